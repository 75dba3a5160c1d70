// Several sequencers and several outboxes around one storage that fails in every way it can.
import { createHash } from 'node:crypto';
import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import { newestState, upToOf } from '../../../functions/audit/log/acknowledge.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { type Round, Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import type { Signer } from '../../../shared/audit/note.ts';
import { settle } from '../../fake/clock.ts';
import { askedStore } from '../../fake/faulty-log-store.ts';
import { MemoryStore } from '../../fake/log-store.ts';
import { randomOf } from '../../fake/random.ts';
import { Failed, type Fate, Scheduler } from './scheduler.ts';

export const ZONE = 'eu';
export const BASE = 'audit.example';

/** Signs at once: what signatures are worth is tested elsewhere, and a real one would leave the order to the machine. */
const signer = (name: string): Signer => ({
  name,
  keyId: new Uint8Array(4).fill(1),
  sign: async (text) => new Uint8Array(createHash('sha256').update(name).update(text).digest()),
});

/** Signs otherwise each time, as ECDSA does. */
const vague = (name: string, random: () => number): Signer => ({
  name,
  keyId: new Uint8Array(4).fill(2),
  sign: async () => new Uint8Array(8).map(() => Math.floor(random() * 256)),
});

/** Rows of one delivery that is not of all. */
const SOME = 24;

/** Storage as one process sees it. */
export const storeOf = (actor: object, store: MemoryStore, scheduler: Scheduler): LogStore =>
  askedStore(store, (what, run) => scheduler.ask(actor, what, run));

/** Rows of one life of an outbox; numbers begin at 1. */
export interface Outbox {
  readonly producer: string;
  readonly epoch: string;
  /** Number that the next event gets. */
  next: number;
  /** Number of the oldest row it still has. */
  oldest: number;
  /** Everything up to this number was sent at some time. */
  sent: number;
  /** Events that it had to drop before the log had them. */
  readonly lost: number[];
}

const uuid = (random: () => number): string => {
  const digits = (count: number) =>
    Math.floor(random() * 16 ** count)
      .toString(16)
      .padStart(count, '0');
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(6)}${digits(6)}`;
};

export class World {
  readonly random: () => number;
  readonly store = new MemoryStore();
  readonly scheduler = new Scheduler();
  readonly outboxes: Outbox[] = [];
  readonly problems: string[] = [];
  readonly rounds: Round['kind'][] = [];
  now: number;

  /** Returns a second signer beside the one with randomised signatures. */
  readonly #signer: (name: string) => Signer;

  constructor(seed: number, start: number, signerOf = signer) {
    this.#signer = signerOf;
    this.random = randomOf(seed);
    this.now = start;
    this.store.clock = () => this.now;
  }

  addOutbox(): Outbox {
    const tenant = `t${Math.floor(this.random() * 2)}`;
    const outbox = {
      producer: `gate/${tenant}/${ZONE}`,
      epoch: uuid(this.random),
      next: 1,
      oldest: 1,
      sent: 0,
      lost: [],
    };
    this.outboxes.push(outbox);
    return outbox;
  }

  readonly #wake: (() => void)[] = [];

  /** Resolves when an outbox may have new events. */
  news(): Promise<void> {
    return new Promise((settle) => void this.#wake.push(settle));
  }

  tellNews(): void {
    for (const settle of this.#wake.splice(0)) settle();
  }

  sequencer(actor: object, skew = 0): Sequencer {
    return new Sequencer({
      store: storeOf(actor, this.store, this.scheduler),
      signers: (name) => [this.#signer(name), vague(name, this.random)],
      zone: ZONE,
      base: BASE,
      now: () => this.now + skew,
      newId: () => uuid(this.random),
    });
  }

  /** Rounds until `wanted` says no. What is wrong with the log, and not with storage, is a problem. */
  async run(sequencer: Sequencer, wanted: () => boolean): Promise<void> {
    while (wanted()) {
      try {
        this.rounds.push((await sequencer.round()).kind);
      } catch (error) {
        if (!(error instanceof Failed)) this.problems.push(String(error));
      }
    }
  }

  /** One delivery, of some rows or of all, and what comes of the answer. */
  async deliver(actor: object, outbox: Outbox, all = false): Promise<void> {
    const store = storeOf(actor, this.store, this.scheduler);
    const { producer, epoch, oldest, next } = outbox;
    const [, tenant] = producer.split('/');
    const count = next - oldest;
    const skipped = !all && this.random() < 0.2 ? Math.floor(this.random() * count) : 0;
    const first = oldest + skipped;
    const last = all ? next - 1 : Math.min(next - 1, first + Math.floor(this.random() * Math.min(count, SOME)));
    // Mostly polls for sent rows, and sometimes resends them.
    const asks = outbox.sent === next - 1 && this.random() < 0.7;
    if (last === next - 1 && skipped === 0) outbox.sent = last;
    const rows = [];
    for (let pseq = first; !asks && pseq <= last; pseq += 1) {
      const event = {
        v: 1,
        id: uuid(this.random),
        type: 'route',
        at: this.now,
        producer: 'edge',
        tenant,
        attempt: pseq,
      };
      rows.push({ to: pseq, t: this.now, events: [event] });
    }
    try {
      const received = await receive({ v: 1, producer, epoch, oldest, rows }, this.now, async () => '');
      if (received) await store.create('intake', nameOfReceived(ZONE, received), encode(received));
      const upTo = upToOf(await newestState(store, ZONE), producer, epoch);
      outbox.oldest = Math.max(outbox.oldest, upTo + 1);
    } catch (error) {
      if (!(error instanceof Failed)) this.problems.push(String(error));
    }
  }

  /** Drops the oldest rows, as a full outbox does. */
  lose(outbox: Outbox, count: number): void {
    const until = Math.min(outbox.next, outbox.oldest + count);
    for (; outbox.oldest < until; outbox.oldest += 1) outbox.lost.push(outbox.oldest);
  }

  /** Answers calls until none is waiting, or `most` were. `died` is told of each process that ended. */
  async turn(most: number, decide: (what: string) => Fate, died: (actor: object) => void): Promise<void> {
    for (let count = 0; count < most; count += 1) {
      await settle();
      if (this.scheduler.waiting === 0) return;
      this.now += Math.floor(this.random() * 40);
      const dead = await this.scheduler.next(this.random, decide);
      if (dead) died(dead);
    }
  }
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
