// A log whose leaves hide something, written as the functions write it, on storage that can be looked through.

import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import type { RetentionOf } from '../../../functions/audit/sidecar/hide.ts';
import { openHide } from '../../../functions/audit/sidecar/hide.ts';
import { wrapWith } from '../../../functions/audit/sidecar/sidecar-box.ts';
import { SidecarKeys } from '../../../functions/audit/sidecar/sidecar-keys.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { MemoryStore, readStoredLog } from '../../fake/log-store.ts';

export const ZONE = 'eu';
export const BASE = 'audit.example';
export const SUMMER = Date.UTC(2026, 5, 1);
export const WRAPPING = Buffer.alloc(32, 7).toString('base64');
export const signingKey = await openSigningKey(new Uint8Array(32).fill(5));

export class HiddenLog {
  readonly store: MemoryStore;
  /** Storage as the functions see it. */
  readonly seen: LogStore;
  now = SUMMER;
  #delivered = 0;
  retention: RetentionOf = () => 'standard';
  readonly keys: SidecarKeys;

  constructor(store = new MemoryStore(), seen: LogStore = store) {
    this.store = store;
    this.seen = seen;
    this.keys = this.newKeys();
  }

  /** The keys as another process has them: nothing is in its memory. */
  newKeys(seen = this.seen): SidecarKeys {
    return new SidecarKeys({ store: seen, zone: ZONE, wrap: wrapWith(WRAPPING), now: () => this.now });
  }

  event(more: Record<string, unknown> = {}): Record<string, unknown> {
    const random = crypto.getRandomValues(new Uint8Array(10));
    const base = { v: 1, id: eventId(this.now, random), type: 'inference.complete', at: this.now, producer: 'edge' };
    return { ...base, tenant: 'dev', request: 'r1', action: 'transcribe', status: 200, ...more };
  }

  /** One delivery of these events, waiting for the log. */
  async deliver(...events: Record<string, unknown>[]): Promise<void> {
    const from = this.#delivered + 1;
    this.#delivered += events.length;
    const rows = [{ to: this.#delivered, t: this.now, events }];
    const delivery = { v: 1 as const, producer: `gate/dev/${ZONE}`, epoch: EPOCH, oldest: 1, rows };
    const received = await receive(delivery, this.now, openHide(this.keys, this.retention));
    if (!received) throw new Error(`not taken: from ${from}`);
    await this.store.create('intake', nameOfReceived(ZONE, received), encode(received));
  }

  /** Takes what waits into the log. */
  async commit(): Promise<void> {
    for (let rounds = 0; rounds < 4; rounds += 1) {
      this.now += 10;
      const parts = { store: this.store, zone: ZONE, base: BASE, now: () => this.now };
      const newId = () => eventId(this.now, crypto.getRandomValues(new Uint8Array(10)));
      const signers = (name: string) => [signingKey.signer(name)];
      const { kind } = await new Sequencer({ ...parts, signers, newId }).round();
      if (kind === 'idle') return;
    }
    throw new Error('it is never done');
  }

  async write(...events: Record<string, unknown>[]): Promise<void> {
    await this.deliver(...events);
    await this.commit();
  }

  get year(): number {
    return new Date(this.now).getUTCFullYear();
  }

  read() {
    return readStoredLog(this.store, ZONE, this.year);
  }

  place() {
    return { store: this.seen, zone: ZONE, year: this.year };
  }
}

const EPOCH = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
