import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy to a local port, as a network that breaks. */
export interface Breakable {
  readonly url: string;
  /** While it is down, all connections are broken, and new ones at once. */
  setDown(down: boolean): void;
  close(): void;
}

export async function openBreakable(port: number): Promise<Breakable> {
  let down = false;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const ends = [client, upstream];
    for (const end of ends) {
      open.add(end);
      end.on('error', () => {});
      end.on('close', () => {
        open.delete(end);
        for (const each of ends) each.destroy();
      });
    }
    client.pipe(upstream).pipe(client);
    if (down) client.destroy();
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setDown(now) {
      down = now;
      if (down) for (const end of open) end.destroy();
    },
    close: () => server.close(),
  };
}
