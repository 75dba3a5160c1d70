import { backOffMs } from '../../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import type { Clock } from '../clock.ts';
import { log } from '../log.ts';
import type { Slot } from './slot.ts';

const pauses = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };

/** Failed loads of a model since it last served. */
interface Failed {
  count: number;
  /** Cancels the next attempt; `undefined` while none is scheduled. */
  cancel: (() => void) | undefined;
}

/** Schedules another load of each wanted model that serves nothing, with bounded exponential back-off. */
export class LoadRetries {
  readonly #clock: Clock;
  readonly #load: (slot: Slot) => void;
  readonly #failed = new Map<Slot, Failed>();

  constructor(clock: Clock, load: (slot: Slot) => void) {
    this.#clock = clock;
    this.#load = load;
  }

  /** Notes that a load begins, which replaces the scheduled one. */
  begin(slot: Slot): void {
    const failed = this.#failed.get(slot);
    failed?.cancel?.();
    if (failed) failed.cancel = undefined;
  }

  /**
   * Schedules missing models, and forgets those that serve or are unloaded. `waits`: another model's load
   * revives it.
   */
  update(slots: Iterable<Slot>, waits: (slot: Slot) => boolean): void {
    for (const slot of slots) {
      const known = this.#failed.get(slot);
      if (slot.healthy) {
        known?.cancel?.();
        if (known && slot.wanted) log('model recovered', { model: slot.name, failures: known.count });
        this.#failed.delete(slot);
      } else if (!known?.cancel && !waits(slot)) this.#schedule(slot, known?.count ?? 0);
    }
  }

  #schedule(slot: Slot, before: number): void {
    const pauseMs = Math.round(backOffMs(before, pauses, Math.random()));
    const failed: Failed = { count: before + 1, cancel: undefined };
    this.#failed.set(slot, failed);
    log('load retry scheduled', { model: slot.name, failures: failed.count, pauseMs });
    failed.cancel = this.#clock.alarm(this.#clock.now() + pauseMs * 1_000, () => {
      failed.cancel = undefined;
      this.#load(slot);
    });
  }

  close(): void {
    for (const { cancel } of this.#failed.values()) cancel?.();
    this.#failed.clear();
  }
}
