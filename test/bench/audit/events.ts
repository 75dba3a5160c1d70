// Edge events of realistic number and size, and their way into the intake of a log.

import { nameOfReceived, type Received, receive } from '../../../functions/audit/intake/intake.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import type { Hide } from '../../../functions/audit/sidecar/hide.ts';
import { openHide } from '../../../functions/audit/sidecar/hide.ts';
import { wrapWith } from '../../../functions/audit/sidecar/sidecar-box.ts';
import { SidecarKeys } from '../../../functions/audit/sidecar/sidecar-keys.ts';
import type { Delivery } from '../../../shared/audit/delivery.ts';
import { eventId } from '../../../shared/audit/event-id.ts';

/** Subjects of a tenant. Each has a key of its own, made with its first event. */
const SUBJECTS = 10;

const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));

function event(tenant: string, number: number, at: number): object {
  return {
    ...{ v: 1, id: eventId(at, random(10)), type: 'inference.complete', at, producer: 'edge', tenant },
    ...{ request: `req_${number.toString(36).padStart(20, '0')}`, subject: `user-${number % SUBJECTS}` },
    ...{ action: 'transcribe', status: 200, class: 'interactive', model: 'reference-en', language: 'en' },
    ...{ revision: `sha256:${'0'.repeat(64)}`, agent: 'aks-westeurope-0', audioSeconds: 12.3, bytes: 320_000 },
    milliseconds: 480 + (number % 100),
  };
}

/** Outbox of one tenant, which delivers in its order. */
export class Producer {
  readonly producer: string;
  readonly epoch = crypto.randomUUID();
  readonly #tenant: string;
  readonly #zone: string;
  #next = 1;

  constructor(zone: string, tenant: string) {
    this.producer = `gate/${tenant}/${zone}`;
    this.#tenant = tenant;
    this.#zone = zone;
  }

  /** The next delivery. */
  make(count: number): Delivery {
    const [from, at] = [this.#next, Date.now()];
    this.#next += count;
    const rows = Array.from({ length: count }, (_, place) => ({
      to: from + place,
      t: at,
      events: [event(this.#tenant, from + place, at)],
    }));
    return { v: 1, producer: this.producer, epoch: this.epoch, oldest: 1, rows };
  }

  /** The next delivery as it waits for the log: salts, commitments and encrypted values are made. */
  async prepare(count: number, hide: Hide): Promise<Received> {
    const received = await receive(this.make(count), Date.now(), hide);
    if (!received) throw new Error('nothing received');
    return received;
  }

  /** Stores a delivery as `POST /api/audit/{zone}/events` does; returns the number of its last event. */
  async store(store: LogStore, received: Received): Promise<number> {
    const bytes = new TextEncoder().encode(JSON.stringify(received));
    await store.create('intake', nameOfReceived(this.#zone, received), bytes);
    return received.from + received.drafts.length - 1;
  }
}

export const hideFor = (store: LogStore, zone: string): Hide =>
  openHide(
    new SidecarKeys({ store, zone, wrap: wrapWith(Buffer.alloc(32, 7).toString('base64')), now: () => Date.now() }),
  );
