import { limits } from '../limits.ts';

/** Where the time of a session stands; ms since 1970 where nothing else is said. */
export interface Times {
  /** When it began, and must end. */
  readonly began: number;
  readonly until: number;
  /** Seconds of audio that were taken. */
  readonly taken: number;
  /** When the client was last heard, while it is here. */
  readonly client: number | undefined;
  /** How many ms it may be silent; `limits.streamIdleMs` unless its dialect knows another bound. */
  readonly idleMs?: number | undefined;
  /** When it went away. */
  readonly dropped: number;
  /** When the agent was last heard, while there is one. */
  readonly agent: number | undefined;
  /** When the input ended, or something of it was settled after that. */
  readonly finishing: number | undefined;
  /** All was said, and waits for the client to come back. */
  readonly done: boolean;
}

/**
 * `agent_silent`: it is lost. `gone`: the client does not come back. `late`: the rest takes too long. `too_long` and
 * `idle` end the input. `ending`: the session has less than `limits.streamEndingMs` left.
 */
export type Due = 'agent_silent' | 'gone' | 'late' | 'too_long' | 'idle' | 'ending';

/** What is due now, in this order. */
export function dueAt(times: Times, now: number): Due[] {
  const { client, agent, dropped, finishing, done } = times;
  const due: Due[] = [];
  if (agent !== undefined && now - agent > limits.streamSilenceMs.value) due.push('agent_silent');
  if (client === undefined && now - dropped > limits.streamResumeMs.value) due.push('gone');
  if (done) return due;
  if (finishing !== undefined) {
    if (now - finishing > limits.streamFinishMs.value) due.push('late');
    return due;
  }
  const left = millisecondsLeft(times, now);
  if (left <= 0) due.push('too_long');
  else if (left <= limits.streamEndingMs.value) due.push('ending');
  if (client !== undefined && now - client > (times.idleMs ?? limits.streamIdleMs.value)) due.push('idle');
  return due;
}

/** Until the session is as long as it may be, by the clock and by its audio: who sends faster reaches the end sooner. */
export const millisecondsLeft = ({ began, until, taken }: Times, now: number): number =>
  Math.min(until - now, until - began - taken * 1_000);
