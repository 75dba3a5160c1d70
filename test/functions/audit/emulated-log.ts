// Logs on the real emulator: outboxes that deliver, writers that die, and what an outsider reads afterwards.

import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import { newestState, upToOf } from '../../../functions/audit/log/acknowledge.ts';
import type { BlobLogStore } from '../../../functions/audit/log/blob-log-store.ts';
import { areas, type LogStore } from '../../../functions/audit/log/log-store.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import type { Signer } from '../../../shared/audit/note.ts';
import { MemoryStore, readStoredLog } from '../../fake/log-store.ts';

export const YEAR = 2026;
const BASE = 'audit.example';
const START = Date.UTC(YEAR, 5, 1);

export class Died extends Error {}

/** Storage as a process sees it that may die before or after any call. */
export function mortal(store: LogStore, dies: () => 'before' | 'after' | undefined): LogStore {
  const call = async <T>(run: () => Promise<T>): Promise<T> => {
    const when = dies();
    if (when === 'before') throw new Died();
    const value = await run();
    if (when === 'after') throw new Died();
    return value;
  };
  return {
    read: (area, name) => call(() => store.read(area, name)),
    create: (area, name, bytes) => call(() => store.create(area, name, bytes)),
    replace: (area, name, bytes, version) => call(() => store.replace(area, name, bytes, version)),
    list: (area, prefix, limit) => call(() => store.list(area, prefix, limit)),
    remove: (area, name) => call(() => store.remove(area, name)),
  };
}

let clock = 0;

/** Returns the signers of the log of that name. */
export type SignersOf = (origin: string) => readonly Signer[];

export function writerOf(store: LogStore, zone: string, signers: SignersOf): Sequencer {
  return new Sequencer({
    // It is another time than storage's.
    store: { ...store, clock: () => undefined },
    ...{ zone, base: BASE, signers, newId: () => crypto.randomUUID() },
    now: () => START + ++clock,
  });
}

/** Events of one outbox, numbered from 1. */
export class Sender {
  readonly producer: string;
  readonly epoch = crypto.randomUUID();
  readonly count: number;
  readonly #zone: string;

  constructor(zone: string, name: string, count: number) {
    this.producer = `gate/${name}/${zone}`;
    this.count = count;
    this.#zone = zone;
  }

  async send(store: LogStore, from: number, to: number): Promise<void> {
    const tenant = this.producer.split('/')[1];
    const rows = Array.from({ length: to - from + 1 }, (_, at) => ({
      to: from + at,
      t: START,
      events: [
        { v: 1, id: crypto.randomUUID(), type: 'route', at: START, producer: 'edge', tenant, attempt: from + at },
      ],
    }));
    const delivery = { v: 1 as const, producer: this.producer, epoch: this.epoch, oldest: 1, rows };
    const received = await receive(delivery, START, async () => '');
    if (!received) throw new Error('nothing received');
    const bytes = new TextEncoder().encode(JSON.stringify(received));
    await store.create('intake', nameOfReceived(this.#zone, received), bytes);
  }

  async acknowledged(store: LogStore): Promise<number> {
    return upToOf(await newestState(store, this.#zone), this.producer, this.epoch);
  }
}

/** Everything of a zone as it lies in storage. */
export async function fetchAll(store: BlobLogStore, zone: string): Promise<MemoryStore> {
  const fetched = new MemoryStore();
  await Promise.all(
    areas.map(async (area) => {
      const names = await store.list(area, `${zone}/`, 100_000);
      await Promise.all(
        names.map(async (name) => {
          const kept = await store.read(area, name);
          if (kept) fetched.area(area).set(name, kept);
        }),
      );
    }),
  );
  return fetched;
}

/** Returns an outside reader's findings about the log and its copy of each outbox. */
export async function findWrong(store: BlobLogStore, zone: string, senders: readonly Sender[]): Promise<string[]> {
  const { leaves } = readStoredLog(await fetchAll(store, zone), zone, YEAR);
  const problems: string[] = [];
  for (const { producer, epoch, count } of senders) {
    const numbers = leaves.filter((leaf) => leaf.p === producer && leaf.ep === epoch).map(({ pseq }) => pseq);
    const expected = Array.from({ length: count }, (_, at) => at + 1);
    // In their order, each once: nothing lost, nothing doubled.
    if (numbers.join() !== expected.join()) problems.push(`${producer}: ${numbers.length} events of ${count}`);
  }
  const gaps = leaves.filter(({ type }) => type === 'producer.gap').length;
  if (gaps > 0) problems.push(`${gaps} gaps are told of`);
  return problems;
}
