// `node test/bench/front/profile.ts [BYTES] [SECONDS] [strict]`: where the edge's time goes under load, function by
// function, from the profiler of its own runtime. The numbers include the profiler's cost; only shares mean anything.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import WebSocket from 'ws';
import { ROOT } from '../../../infra/local/root.ts';
import { makeIdentity } from './identity.ts';
import { load } from './load.ts';
import { freePort, listens, startOn, stopAll } from './processes.ts';
import { config, SMALL } from './systems.ts';
import { startUpstream } from './upstream-process.ts';
import { planWorker } from './workerd.ts';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
}

const [bytes = String(SMALL), seconds = '4', audit = 'buffered'] = process.argv.slice(2);
const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-profile-'));
try {
  const identity = await makeIdentity(folder);
  const upstream = await startUpstream('0');
  const [port, inspector] = [await freePort(), await freePort()];
  const plan = { folder: path.join(folder, 'edge'), port, config, bindings: identity.edgeBindings };
  const command = await planWorker(path.join(ROOT, 'edge/worker.ts'), plan);
  const child = startOn('1', [...command, `--inspector-addr=127.0.0.1:${inspector}`]);
  await listens(port, child);
  const url = `http://127.0.0.1:${port}`;
  await upstream.join(url, identity);
  const token = await identity.tenantToken('profile', audit === 'strict' ? 'strict' : 'buffered');
  const ask = { url, upstream: '', pid: child.pid, token, bytes: Number(bytes), connections: 32, seconds: 2 };
  await load(ask, '0');
  const profiler = await openProfiler(inspector);
  await profiler('Profiler.enable');
  await profiler('Profiler.setSamplingInterval', { interval: 200 });
  await profiler('Profiler.start');
  const run = await load({ ...ask, seconds: Number(seconds) }, '0');
  const { profile } = (await profiler('Profiler.stop')) as { profile: Profile };
  show(profile);
  console.log(run);
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
