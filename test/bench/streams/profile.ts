// `node test/bench/streams/profile.ts [STREAMS] [SECONDS]`: where the edge's time goes while it holds live streams,
// function by function, from the profiler of its own runtime. It includes the profiler's cost; only shares mean anything.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { freePort, stopAll } from '../front/processes.ts';
import { runPhase, startSystems } from './edge-half.ts';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
}

const [streams, seconds] = [Number(process.argv[2] ?? 300), Number(process.argv[3] ?? 10)];
const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-profile-'));
try {
  const inspector = await freePort();
  const { double, edge } = await startSystems(folder, inspector);
  const profiler = await openProfiler(inspector);
  await profiler('Profiler.enable');
  await profiler('Profiler.setSamplingInterval', { interval: 200 });
  const phase = runPhase(edge, double, streams, seconds);
  // Handshakes and compilers have their time before.
  await wait(5_000);
  await profiler('Profiler.start');
  await wait(seconds * 1_000 - 2_000);
  const { profile } = (await profiler('Profiler.stop')) as { profile: Profile };
  show(profile);
  const { load, cpuPerFrame } = await phase;
  console.log({ ...load, cpuPerFrame });
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}

async function openProfiler(port: number) {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '', { maxPayload: 2 ** 30 });
  await new Promise((resolve) => socket.once('open', resolve));
  const waiting = new Map<number, (result: unknown) => void>();
  socket.on('message', (data) => {
    const { id, result } = JSON.parse(String(data));
    waiting.get(id)?.(result);
  });
  let last = 0;
  return (method: string, params: unknown = {}) =>
    new Promise<unknown>((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      socket.send(JSON.stringify({ id: last, method, params }));
    });
}

function show({ nodes, samples }: Profile): void {
  const names = new Map(
    nodes.map(({ id, callFrame }) => [id, `${callFrame.functionName || '(anonymous)'} ${callFrame.lineNumber + 1}`]),
  );
  const counts = new Map<string, number>();
  for (const sample of samples) {
    const name = names.get(sample) ?? '?';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([, one], [, other]) => other - one).slice(0, 45);
  for (const [name, count] of sorted)
    console.log(`${((100 * count) / samples.length).toFixed(1).padStart(5)} %  ${name}`);
}
