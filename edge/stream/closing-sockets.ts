import type { Claims } from '../../shared/tenant/claims.ts';
import type { Runtime } from '../clock.ts';
import { STREAM_TICK_MS } from './limits.ts';
import { sockets } from './sockets.ts';

/** Longest wait for a client's answer to a close frame: several round trips of the slowest phone. */
export const STREAM_CLOSE_TIMEOUT_MS = 10_000;

/** Reason of an abort, for the platform's log. */
export const UNANSWERED = 'the client did not answer the close frame';

interface Options {
  readonly runtime: Runtime;
  /** Whether the object has a connection that is in use. */
  readonly busy: () => boolean;
  /** Ends the object with all its sockets: the runtime ends no single one. */
  readonly abort: () => void;
}

/** Sockets of one Durable Object whose close frame the client has not answered. */
export class ClosingSockets {
  readonly #options: Options;
  readonly #sockets = new Map<object, { readonly claims: Claims; readonly at: number }>();
  /** A loop looks for overdue sockets. */
  #watching = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Number of sockets past `STREAM_CLOSE_TIMEOUT_MS`, which stay open only beside a connection in use. */
  get overdue(): number {
    const now = this.#options.runtime.now();
    return [...this.#sockets.values()].filter(({ at }) => now - at >= STREAM_CLOSE_TIMEOUT_MS).length;
  }

  /** Counts a socket from its close frame on, and ends the object when the client does not answer. */
  add(socket: object, claims: Claims): void {
    const at = this.#options.runtime.now();
    sockets.closing(claims, socket);
    this.#sockets.set(socket, { claims, at });
    if (!this.#watching) void this.#watch();
  }

  delete(socket: object): void {
    const entry = this.#sockets.get(socket);
    if (!entry) return;
    this.#sockets.delete(socket);
    sockets.closed(entry.claims, socket);
  }

  async #watch(): Promise<void> {
    const { runtime, busy, abort } = this.#options;
    this.#watching = true;
    while (this.#sockets.size > 0) {
      await runtime.after(STREAM_TICK_MS).rings;
      if (busy() || this.#sockets.size === 0 || this.overdue < this.#sockets.size) continue;
      for (const socket of this.#sockets.keys()) this.delete(socket);
      abort();
    }
    this.#watching = false;
  }
}
