import type { Alarm, Runtime } from '../clock.ts';
import { STREAM_FINISH_MS, STREAM_IDLE_MS, STREAM_RESUME_MS, STREAM_TICK_MS } from './limits.ts';

/**
 * Silence after which an agent is lost: three keepalives, and more than the longest pause of a live agent.
 */
export const STREAM_SILENCE_MS = 6_000;
/**
 * Time that a session waits for memory, ms, and the most that chance adds: of sessions that wait for each other the first
 * to end lets the others go on.
 */
export const STREAM_STARVED_MS = 5_000;
export const STREAM_STARVED_MORE_MS = 10_000;
/** Notice before a session's greatest length, so that a client can end an utterance and open another. */
export const STREAM_ENDING_MS = 10_000;

/** Times of a session, epoch ms unless noted. */
export interface Times {
  readonly began: number;
  /** Latest end. */
  readonly until: number;
  /** Seconds of audio received. */
  readonly received: number;
  /** Last message of the client; undefined while it is disconnected. */
  readonly client: number | undefined;
  /** Longest silence of the client, ms; `STREAM_IDLE_MS` unless its protocol has another one. */
  readonly idleMs?: number | undefined;
  readonly disconnected: number;
  /** Last message of the agent; undefined without one. */
  readonly agent: number | undefined;
  /** End of the input, or the last checkpoint after it. */
  readonly finishing: number | undefined;
  /** End of the wait for memory alone, epoch ms; undefined when the session does not wait. */
  readonly starvedUntil?: number | undefined;
  /** Whether the session waits only for the client to come back. */
  readonly done: boolean;
}

/**
 * `agent_silent`: the agent is lost. `gone`: the client does not come back. `overdue`: the rest takes too long. `starved`:
 * other sessions have its memory. `too_long` and `idle` end the input. `ending`: less than `STREAM_ENDING_MS` is left.
 */
export type Due = 'agent_silent' | 'gone' | 'overdue' | 'starved' | 'too_long' | 'idle' | 'ending';

/** Returns the deadlines that have passed, in order of precedence. */
export function dueAt(times: Times, now: number): Due[] {
  const { client, agent, disconnected, finishing, done } = times;
  const due: Due[] = [];
  if (agent !== undefined && now - agent > STREAM_SILENCE_MS) due.push('agent_silent');
  if (client === undefined && now - disconnected > STREAM_RESUME_MS) due.push('gone');
  if (done) return due;
  if (finishing !== undefined) {
    if (now - finishing > STREAM_FINISH_MS) due.push('overdue');
    return due;
  }
  if (times.starvedUntil !== undefined && now > times.starvedUntil) due.push('starved');
  const left = millisecondsLeft(times, now);
  if (left <= 0) due.push('too_long');
  else if (left <= STREAM_ENDING_MS) due.push('ending');
  if (client !== undefined && now - client > (times.idleMs ?? STREAM_IDLE_MS)) due.push('idle');
  return due;
}

/** Returns the rest of a session: the lesser of what the clock and the received audio leave. */
export const millisecondsLeft = ({ began, until, received }: Times, now: number): number =>
  Math.min(until - now, until - began - received * 1_000);

/** Deadlines that must pass twice: a busy thread reads messages late, after it reads the clock. */
const needsConfirmation: ReadonlySet<Due> = new Set(['agent_silent', 'gone', 'idle']);

/** Calls back with the passed deadlines of a session, every `STREAM_TICK_MS`. */
export class DeadlineTimer {
  readonly #runtime: Runtime;
  #alarm: Alarm | undefined;
  #stopped = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Reads times with `read` and passes deadlines to `onDue`, until `stop`. Rejects with the error of either. */
  async start(read: () => Times, onDue: (due: Due, times: Times, now: number) => void): Promise<void> {
    let before: readonly Due[] = [];
    while (!this.#stopped) {
      this.#alarm = this.#runtime.after(STREAM_TICK_MS);
      await this.#alarm.rings;
      const now = this.#runtime.now();
      const times = read();
      const due = dueAt(times, now);
      for (const one of due) {
        if (!this.#stopped && (!needsConfirmation.has(one) || before.includes(one))) onDue(one, times, now);
      }
      before = due;
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
  }
}
