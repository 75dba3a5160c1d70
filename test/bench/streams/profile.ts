// `node test/bench/streams/profile.ts [edge|agent] [STREAMS] [SECONDS]`: where the time of a half goes while it holds
// live streams.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, stopAll } from '../front/processes.ts';
import { openProfiler } from '../profiler.ts';
import { measureAgent } from './agent-half.ts';
import { runPhase, startSystems } from './edge-half.ts';

/** Handshakes and compilers have their time before. */
const WARM_MS = 5_000;

interface Plan {
  readonly folder: string;
  readonly streams: number;
  readonly seconds: number;
}

async function watch(inspector: number, seconds: number): Promise<void> {
  const profiler = await openProfiler(inspector);
  await wait(WARM_MS);
  await profiler.start();
  await wait(seconds * 1_000 - 2_000);
  await profiler.show();
}

const halves = {
  async edge({ folder, streams, seconds }: Plan) {
    const inspector = await freePort();
    const { double, edge } = await startSystems(folder, inspector);
    const [phase] = await Promise.all([runPhase(edge, double, streams, seconds), watch(inspector, seconds)]);
    return { ...phase.load, cpuPerFrame: phase.cpuPerFrame };
  },
  async agent(plan: Plan) {
    const inspector = await freePort();
    const begun = () => void watch(inspector, plan.seconds);
    const { load, cpuPerFrame } = await measureAgent({ ...plan, workers: 1, inspector, begun });
    return { ...load, cpuPerFrame };
  },
};

const [half = 'edge', streams = '300', seconds = '10'] = process.argv.slice(2);
if (half !== 'edge' && half !== 'agent') throw new Error('edge or agent');
const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-profile-'));
try {
  console.log(await halves[half]({ folder, streams: Number(streams), seconds: Number(seconds) }));
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
