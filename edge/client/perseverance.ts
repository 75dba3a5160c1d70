import { streamClientLimits as limits } from '../../shared/limits/stream-client.ts';
import type { OpenOptions } from './contract.ts';

/** Refusals that another connection may well not meet; after any other one the stream has failed. */
const passing: ReadonlySet<string> = new Set([
  ...['internal', 'pool_lost', 'pool_busy', 'no_pool', 'engine_failed', 'edge_busy', 'deadline_passed'],
  ...['identity_unavailable', 'audit_unavailable', 'storage_full', 'allowance_concurrent'],
]);

/** Whether a client tries again, and when. Times are handed in. */
export class Perseverance {
  readonly #patienceMs: number;
  /** Each connection gets a token of its own. */
  readonly #freshTokens: boolean;
  #attempt = 0;
  /** Sessions that were refused under way since anything was settled. */
  #fruitless = 0;
  /** Tokens in a row that had expired when they came. */
  #expired = 0;
  /** Since when there is no session, ms. */
  #since: number;

  constructor({ patienceMs, token }: Pick<OpenOptions, 'patienceMs' | 'token'>, now: number) {
    this.#patienceMs = patienceMs ?? limits.clientPatienceMs.value;
    this.#freshTokens = typeof token === 'function';
    this.#since = now;
  }

  /** There is a session; true when one was broken before. */
  greeted(): boolean {
    const again = this.#attempt > 0;
    this.#attempt = 0;
    this.#expired = 0;
    return again;
  }

  settled(): void {
    this.#fruitless = 0;
  }

  /** A session broke. */
  lost(now: number): void {
    this.#since = now;
  }

  /** Whether a refusal is the end. `started`: the session was under way. */
  isOver(reason: string, started: boolean): boolean {
    // A session that was under way and is refused again and again would be refused for ever.
    if (started) this.#fruitless += 1;
    // Whoever gives tokens may have had an old one; one that is new and has expired, too, is of a clock that is wrong.
    const expired = reason === 'token_expired' && this.#freshTokens;
    if (expired) this.#expired += 1;
    const most = limits.clientTries.value;
    const again = expired ? this.#expired < most : passing.has(reason);
    return !again || this.#fruitless >= most;
  }

  /** The next attempt, and after which pause; none when that took long enough. `random`: 0 to 1. */
  next(now: number, random: number): { readonly attempt: number; readonly pauseMs: number } | undefined {
    if (now - this.#since > this.#patienceMs) return undefined;
    this.#attempt += 1;
    const pause = Math.min(limits.clientFirstPauseMs.value * 2 ** (this.#attempt - 1), limits.clientPauseMs.value);
    return { attempt: this.#attempt, pauseMs: pause * (0.5 + random / 2) };
  }
}
