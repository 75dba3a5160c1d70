import { backOffMs } from '../../shared/back-off.ts';
import type { OpenOptions } from './contract.ts';

/**
 * Default time without a session before the client gives up: twice the wait of an edge, so that a restart is
 * survived.
 */
const CLIENT_PATIENCE_MS = 60_000;
/** Longest pause between two attempts to connect. */
const CLIENT_PAUSE_MAX_MS = 5_000;
/** Sessions in a row that were refused or had an expired token: more would end the same way. */
const CLIENT_TRIES_MAX = 3;
/** First pause before a client of /v1/stream reconnects; it doubles. */
const CLIENT_PAUSE_MS = 100;

/** Refusals that a new connection may avoid; any other one fails the stream. */
const passing: ReadonlySet<string> = new Set([
  ...['internal', 'pool_lost', 'pool_busy', 'no_pool', 'engine_failed', 'edge_busy', 'deadline_passed'],
  ...['identity_unavailable', 'audit_unavailable', 'storage_full', 'allowance_concurrent'],
]);

const BACK_OFF = { firstMs: CLIENT_PAUSE_MS, maxMs: CLIENT_PAUSE_MAX_MS };

/** Decides retries of a client and their pauses. Times are handed in. */
export class Perseverance {
  readonly #patienceMs: number;
  /** Each connection gets a fresh token. */
  readonly #freshTokens: boolean;
  #attempt = 0;
  /** Running sessions that were refused since the last settled audio. */
  #fruitless = 0;
  /** Consecutive fresh tokens that had expired. */
  #expired = 0;
  /** Start of the time without a session, ms. */
  #since: number;

  constructor({ patienceMs, token }: Pick<OpenOptions, 'patienceMs' | 'token'>, now: number) {
    this.#patienceMs = patienceMs ?? CLIENT_PATIENCE_MS;
    this.#freshTokens = typeof token === 'function';
    this.#since = now;
  }

  /** Notes a session; returns true when an earlier one was lost. */
  greeted(): boolean {
    const again = this.#attempt > 0;
    this.#attempt = 0;
    this.#expired = 0;
    return again;
  }

  settled(): void {
    this.#fruitless = 0;
  }

  /** Notes the loss of a session. */
  lost(now: number): void {
    this.#since = now;
  }

  /** Reports whether a refusal is final. `started`: the session was running. */
  isOver(reason: string, started: boolean): boolean {
    // A running session that is refused repeatedly would be refused forever.
    if (started) this.#fruitless += 1;
    // A token source may return a stale token once; repeated expiry of fresh tokens means a wrong clock.
    const expired = reason === 'token_expired' && this.#freshTokens;
    if (expired) this.#expired += 1;
    const most = CLIENT_TRIES_MAX;
    const again = expired ? this.#expired < most : passing.has(reason);
    return !again || this.#fruitless >= most;
  }

  /** Returns the next attempt and its pause; none when patience is exhausted. `random`: 0 to 1. */
  next(now: number, random: number): { readonly attempt: number; readonly pauseMs: number } | undefined {
    if (now - this.#since > this.#patienceMs) return undefined;
    this.#attempt += 1;
    return { attempt: this.#attempt, pauseMs: backOffMs(this.#attempt - 1, BACK_OFF, random) };
  }
}
