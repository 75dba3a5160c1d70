/** A held slot. */
export interface Slot {
  /** Extends the slot's lifetime from `now`, epoch ms. */
  renew(now: number): void;
  /** Frees the slot. */
  leave(): void;
}

/**
 * Limits what runs at once under each key. Without a lifetime a slot is taken until its holder leaves; with one it also
 * expires, for holders that a runtime may drop without running them on.
 */
export class Limiter {
  readonly #most: number;
  readonly #lifetimeMs: number;
  /** Ends of the slots by key, epoch ms. */
  readonly #slots = new Map<string, Map<object, number>>();

  constructor(most: number, lifetimeMs = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#lifetimeMs = lifetimeMs;
  }

  /** Takes a slot; `undefined` while the key has its maximum. `now`: epoch ms, needed with a lifetime only. */
  enter(key: string, now = 0): Slot | undefined {
    const own = this.#slots.get(key) ?? new Map<object, number>();
    for (const [slot, until] of own) if (until <= now) own.delete(slot);
    if (own.size >= this.#most) return undefined;
    this.#slots.set(key, own);
    const slot: Slot = {
      renew: (at) => void own.set(slot, at + this.#lifetimeMs),
      leave: () => {
        own.delete(slot);
        if (own.size === 0 && this.#slots.get(key) === own) this.#slots.delete(key);
      },
    };
    slot.renew(now);
    return slot;
  }
}
