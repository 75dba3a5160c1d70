// The real agent with the embedded engine and the reference network, on the processor: how many streams at once.
import os from 'node:os';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { type AgentPhase, MODEL, runAgentLoad, startAgent } from './agent-half.ts';
import { REPOSITORY, readSound } from './clip-sound.ts';
import { type RecordingLoad, recordBeside } from './recordings-beside.ts';

/** Default slots of the agent. */
const SLOTS = 4;
const FIRST = 16;
const GROWTH = 1.5;
/** The search ends when the step from good to bad is this small. */
const CLOSE = 1.1;
/** Latest useful display of a word after its end, ms, for a person who reads along. */
export const PARTIAL_MS_MAX = 500;

export interface RealStep {
  readonly streams: number;
  readonly good: boolean;
  readonly phase: AgentPhase;
}

/** Streams with recordings beside them at the same engine. */
export interface MixedStep {
  readonly streams: number;
  readonly phase: AgentPhase;
  readonly recordings: RecordingLoad;
  /** Sequences that the agent began again because a step failed. */
  readonly lost: number;
}

export interface RealHalf {
  readonly steps: RealStep[];
  readonly mixed: MixedStep;
}

/** Share of the streams that the machine carries alone which it gets with recordings beside them. */
const MIXED_SHARE = 0.5;

async function countLost(agentUrl: string): Promise<number> {
  const page = await (await fetch(`${agentUrl}/metrics`)).text();
  return Number(/^auricle_agent_stream_rebuilds_total\{cause="lost"\} (\S+)$/m.exec(page)?.[1] ?? 0);
}

/**
 * Tries ever more streams, `seconds` each, then between the last that was good and the first that was not. Half of the
 * streams that were good then run with recordings beside them.
 */
export async function measureReal({ folder, seconds }: { folder: string; seconds: number }): Promise<RealHalf> {
  const { sound, speech } = readSound();
  const engine = await startEmbedded(REPOSITORY);
  try {
    const place = { folder, engineUrl: engine.url, pinned: false, workers: os.availableParallelism(), slots: SLOTS };
    const { agent, ...started } = await startAgent(place);
    const steps: RealStep[] = [];
    const run = (streams: number) => {
      const load = { streams, seconds, engineMs: 0, expected: {} };
      return runAgentLoad({ agent: agent.pid, ...started }, sound, load);
    };
    const attempt = async (streams: number) => {
      const phase = await run(streams);
      const { ended, lostSeconds, wordP99 } = phase.load;
      const good = ended === streams && lostSeconds === 0 && wordP99 < PARTIAL_MS_MAX;
      console.log(`${streams} streams: p99 ${wordP99.toFixed(0)} ms, ${ended} ended${good ? '' : ', too many'}`);
      steps.push({ streams, good, phase });
      return good;
    };
    // A machine has bad moments: what fails is tried once more.
    const holds = async (streams: number) => (await attempt(streams)) || (await attempt(streams));
    let good = 0;
    let bad = FIRST;
    while (await holds(bad)) [good, bad] = [bad, Math.ceil(bad * GROWTH)];
    while (bad > good + 1 && bad / Math.max(1, good) > CLOSE) {
      const middle = Math.floor((good + bad) / 2);
      if (await holds(middle)) good = middle;
      else bad = middle;
    }
    const streams = Math.max(1, Math.floor(good * MIXED_SHARE));
    const before = await countLost(started.agentUrl);
    const stop = recordBeside(engine.url, MODEL, speech);
    const phase = await run(streams).finally(stop);
    const mixed = { streams, phase, recordings: await stop(), lost: (await countLost(started.agentUrl)) - before };
    console.log(`${streams} streams beside recordings: p99 ${phase.load.wordP99.toFixed(0)} ms, ${mixed.lost} lost`);
    return { steps, mixed };
  } finally {
    await engine.stop();
  }
}
