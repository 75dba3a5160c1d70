// Concurrent callers of every kind. Each sends its next request after the last one, until one was served
// after the outage.
import { setTimeout as pause } from 'node:timers/promises';
import type { Running } from '../../../stack/running.ts';
import { openDeepgram, openOpenAi } from '../../streams/official.ts';
import { story } from '../../streams/sound.ts';
import { type Made, make, newMade } from './batch.ts';
import { type Caller, type Expected, type Outcome, outcomeOf, stream, transcribe } from './callers.ts';

export const callers = ['recording', 'deepgram', 'openai', 'upload', 'project'] as const;
export type CallerName = (typeof callers)[number];

export interface Call extends Outcome {
  readonly caller: CallerName;
  readonly startedAt: number;
}

/** Pause between two requests, ms. */
const PAUSE_MS: Readonly<Record<CallerName, number>> = {
  recording: 500,
  deepgram: 500,
  openai: 500,
  upload: 1_500,
  project: 2_500,
};
/** Bound on the recovery of every kind of request after an outage, ms. */
export const RECOVERY_MS_MAX = 120_000;
/** Seconds of sent audio at which a stream is in its first sentence. */
const SPEAKING_S = 2;

export interface Load {
  readonly calls: readonly Call[];
  readonly made: readonly Made[];
  /** Every caller was served once, and both streams are in the middle of their audio. */
  isRunning(): boolean;
  /** Resolves when every caller was served by a request sent after `outageEnd`, or after RECOVERY_MS_MAX. */
  finish(outageEnd: number): Promise<void>;
}

export interface Tenants {
  /** Recordings and streams. */
  readonly live: Caller;
  /** Uploads and projects. */
  readonly batch: Caller;
}

export function startLoad(running: Running, { live, batch }: Tenants, expected: Expected): Load {
  const calls: Call[] = [];
  const made: Made[] = [];
  const sent = { deepgram: 0, openai: 0 };
  let outageEnd = Number.POSITIVE_INFINITY;
  const isServed = (caller: CallerName, since = 0) =>
    calls.some((call) => call.caller === caller && call.result === 'served' && call.startedAt >= since);
  const isOver = (caller: CallerName) => isServed(caller, outageEnd) || Date.now() > outageEnd + RECOVERY_MS_MAX;
  const send = (kind: Made['kind']) => {
    const one = newMade(kind);
    made.push(one);
    return outcomeOf(
      make(batch, one, () => outageEnd + RECOVERY_MS_MAX),
      () => true,
    );
  };
  const own = { ...running, stack: { ...running.stack, token: live.token } };
  const call: Readonly<Record<CallerName, () => Promise<Outcome>>> = {
    recording: () => outcomeOf(transcribe(live), (text) => JSON.parse(text).text === expected.recording),
    deepgram: () =>
      stream(
        () => openDeepgram(own, story.second),
        (at) => (sent.deepgram = at),
        expected.deepgram,
      ),
    openai: () =>
      stream(
        () => openOpenAi(own),
        (at) => (sent.openai = at),
        expected.openai,
      ),
    upload: () => send('uploads'),
    project: () => send('projects'),
  };
  const loop = async (caller: CallerName) => {
    while (!isOver(caller)) {
      const startedAt = Date.now();
      const outcome = await call[caller]();
      calls.push({ ...outcome, caller, startedAt });
      await pause(PAUSE_MS[caller]);
    }
  };
  const loops = Promise.all(callers.map(loop));
  loops.catch(() => {});
  return {
    calls,
    made,
    isRunning: () => callers.every((caller) => isServed(caller)) && Math.min(sent.deepgram, sent.openai) >= SPEAKING_S,
    async finish(at) {
      outageEnd = at;
      await loops;
    },
  };
}
