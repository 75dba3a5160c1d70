// Keys that a process holds in memory: few, and not for long, so that one that is destroyed elsewhere is gone here, too.
import { limits } from '../../../shared/limits.ts';

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
    if (known && at - known.at < limits.auditKeySeconds.value * 1_000) return known.value;
    this.#held.delete(name);
    const [oldest] = this.#held.keys();
    if (this.#held.size >= limits.auditKeysHeld.value && oldest !== undefined) this.#held.delete(oldest);
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
