// `node infra/local/node.cjs test/bench/front/profile.ts [BYTES] [SECONDS] [strict]`: where the edge's time goes under
// load, function by function, from the profiler of its own runtime. The numbers include the profiler's cost; only shares mean anything.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { openProfiler } from '../profiler.ts';
import { makeIdentity } from './identity.ts';
import { load } from './load.ts';
import { freePort, listens, startOn, stopAll } from './processes.ts';
import { config, SMALL } from './systems.ts';
import { startUpstream } from './upstream-process.ts';
import { planWorker } from './workerd.ts';

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
  await profiler.start();
  const run = await load({ ...ask, seconds: Number(seconds) }, '0');
  await profiler.show();
  console.log(run);
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
