// CPU profile of a process by function, from its own runtime: workerd and Node have the same protocol.
// Includes the profiler's cost; only shares mean anything.
import WebSocket from 'ws';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly children?: readonly number[];
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
}

const SAMPLE_MICROS = 200;
const SHOWN = 100;

/**
 * Profiles the process with the inspector at `port`: from `start` until `show` prints the costliest
 * functions.
 */
export async function openProfiler(port: number) {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '', { maxPayload: 2 ** 30 });
  await new Promise((resolve) => socket.once('open', resolve));
  const waiting = new Map<number, (result: unknown) => void>();
  socket.on('message', (data) => {
    const { id, result } = JSON.parse(String(data));
    waiting.get(id)?.(result);
  });
  let last = 0;
  const call = (method: string, params: unknown = {}) =>
    new Promise<unknown>((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  await call('Profiler.enable');
  await call('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS });
  return {
    start: () => call('Profiler.start'),
    async show() {
      const { profile } = (await call('Profiler.stop')) as { profile: Profile };
      print(profile);
      socket.close();
    },
  };
}

/** The functions with the most time in them and in what they call, and what of it is their own. */
function print({ nodes, samples }: Profile): void {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      `${functionName || '(anonymous)'} ${url.split('/').at(-1)}:${lineNumber + 1}`,
    ]),
  );
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const spent = new Map<string, { own: number; all: number }>();
  const of = (name: string) => {
    const time = spent.get(name) ?? { own: 0, all: 0 };
    spent.set(name, time);
    return time;
  };
  for (const sample of samples) {
    const stack = new Set<string>();
    for (let id: number | undefined = sample; id !== undefined; id = callers.get(id)) stack.add(names.get(id) ?? '?');
    for (const name of stack) of(name).all += 1;
    of(names.get(sample) ?? '?').own += 1;
  }
  const percent = (count: number) => `${((100 * count) / samples.length).toFixed(1).padStart(5)} %`;
  const sorted = [...spent].sort(([, one], [, other]) => other.all - one.all).slice(0, SHOWN);
  for (const [name, { own, all }] of sorted) console.log(`${percent(all)}  ${percent(own)}  ${name}`);
}
