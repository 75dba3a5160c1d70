// Ports of the parts. Each is chosen once per run and kept across restarts, so that a part that comes back is found
// where it was and no other part has to be told.
import { createServer } from 'node:net';

export const HOST = '127.0.0.1';

// Below the range from which operating systems take the source ports of outgoing connections (32768 on Linux, 49152
// elsewhere), so that a port stays free while its part restarts.
const LOWEST = 20_000;
const COUNT = 10_000;

export async function isFree(port: number): Promise<boolean> {
  return new Promise((settle) => {
    const server = createServer();
    server.once('error', () => settle(false));
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => settle(true)));
  });
}

/** `count` different free ports. The starting point is random, so that two stacks starting together seldom meet. */
export async function choosePorts(count: number, random: () => number = Math.random): Promise<number[]> {
  const chosen: number[] = [];
  const start = Math.floor(random() * COUNT);
  for (let step = 0; step < COUNT && chosen.length < count; step += 1) {
    const port = LOWEST + ((start + step * 7) % COUNT);
    if (await isFree(port)) chosen.push(port);
  }
  if (chosen.length < count) throw new Error(`no ${count} free ports between ${LOWEST} and ${LOWEST + COUNT}`);
  return chosen;
}
