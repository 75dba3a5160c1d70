/** Verified tokens that an isolate caches, about 2 MiB. */
export const TOKEN_CACHE_MAX = 2048;
/** Longest life of a revoked token in an isolate that has seen it. */
export const TOKEN_CACHE_MS = 60_000;

interface Entry<T> {
  readonly claims: T;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/**
 * Claims of recently verified tokens, so that a busy caller costs one signature check a minute. The key is
 * the header with the token itself: a digest costs more than all other work on a known token, and an
 * isolate's memory holds the tokens of its requests anyway. Entries are plain data, because a request must
 * never wait for a promise of another.
 */
export class TokenCache<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #size: number;

  constructor(size: number = TOKEN_CACHE_MAX) {
    this.#size = size;
  }

  get(key: string, now: number): T | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (entry.until > now) return entry.claims;
    this.#entries.delete(key);
    return undefined;
  }

  /** Stores the claims until the token expires, at most for `TOKEN_CACHE_MS`. */
  put(key: string, claims: T, expiresSeconds: number, now: number): void {
    const until = Math.min(expiresSeconds * 1_000, now + TOKEN_CACHE_MS);
    if (until <= now) return;
    if (this.#entries.size >= this.#size) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, { claims, until });
  }

  get size(): number {
    return this.#entries.size;
  }
}
