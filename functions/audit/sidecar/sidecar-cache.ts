// Keys that a process holds in memory: few, and not for long, so that one that is destroyed elsewhere is gone here, too.

/** Sidecar keys that one process caches, about 1 KiB each; beyond it the oldest is fetched again. */
const SIDECAR_KEYS_MAX = 4_096;
/** Time a key that another process destroyed may stay in the memory of this one. */
const SIDECAR_KEY_S = 300;

export class KeyCache<T> {
  readonly #held = new Map<string, { readonly at: number; readonly value: Promise<T | undefined> }>();
  readonly #now: () => number;

  /** `now` in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the cached value, or calls `find`; failures and absences are not cached. */
  get(name: string, find: () => Promise<T | undefined>): Promise<T | undefined> {
    const at = this.#now();
    const known = this.#held.get(name);
    if (known && at - known.at < SIDECAR_KEY_S * 1_000) return known.value;
    this.#held.delete(name);
    const [oldest] = this.#held.keys();
    if (this.#held.size >= SIDECAR_KEYS_MAX && oldest !== undefined) this.#held.delete(oldest);
    const value = find();
    const entry = { at, value };
    this.#held.set(name, entry);
    const forget = () => {
      if (this.#held.get(name) === entry) this.#held.delete(name);
    };
    value.then((found) => found === undefined && forget(), forget);
    return value;
  }

  clear(): void {
    this.#held.clear();
  }
}
