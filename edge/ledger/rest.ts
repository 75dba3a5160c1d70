import { PRODUCER_IDLE_MS } from '../../shared/audit/limits.ts';
import type { Outbox } from './outbox.ts';
import type { Shipper } from './ship.ts';
import { DELIVERY_RETRY_MAX_MS } from './ship.ts';

/**
 * Announces an outbox's rest after `PRODUCER_IDLE_MS` without writes, and wakes an evicted object
 * that has something to deliver. For objects without another use of their alarm.
 */
export class Rest {
  readonly #storage: DurableObjectState['storage'];
  readonly #outbox: Outbox;
  readonly #shipper: Shipper;
  /** Last write since the object was constructed, epoch ms. */
  #written = 0;
  #isSet = false;

  constructor(storage: DurableObjectState['storage'], outbox: Outbox, shipper: Shipper) {
    this.#storage = storage;
    this.#outbox = outbox;
    this.#shipper = shipper;
  }

  wrote(now: number): void {
    this.#written = now;
    this.#set(now);
  }

  /** Handles the object's alarm. */
  ring(now: number): void {
    this.#isSet = false;
    if (now - this.#written >= PRODUCER_IDLE_MS) {
      try {
        this.#storage.transactionSync(() => this.#outbox.rest(now));
      } catch (error) {
        this.#outbox.reload();
        throw error;
      }
    }
    this.#shipper.nudge();
    this.#set(now);
  }

  #set(now: number): void {
    if (this.#isSet || (!this.#shipper.hasWork && !this.#outbox.isOpen)) return;
    this.#isSet = true;
    const pause = this.#shipper.hasWork ? DELIVERY_RETRY_MAX_MS : PRODUCER_IDLE_MS;
    this.#storage.setAlarm(now + pause).catch(() => {
      this.#isSet = false;
    });
  }
}
