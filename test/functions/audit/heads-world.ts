// Regions and the log of checkpoints on one storage, with real keys.
import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import type { LogLine } from '../../../functions/audit/log/log-desk.ts';
import { openLogKeys } from '../../../functions/audit/log/log-keys.ts';
import type { Kept, LogStore } from '../../../functions/audit/log/log-store.ts';
import { type Round, Sequencer } from '../../../functions/audit/log/sequencer.ts';
import { recordHead } from '../../../functions/audit/witness/record-heads.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { HEADS, readHead } from '../../../shared/audit/head.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { MemoryStore, readStoredLog } from './stored-log.ts';

export const START = Date.UTC(2026, 5, 1);
const EPOCH = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
const keys = await openLogKeys({ AUDIT_KEY: Buffer.alloc(32, 1).toString('base64') });

type Files = ReadonlyMap<string, Kept>;

export class HeadsWorld {
  readonly store = new MemoryStore();
  readonly lines: LogLine[] = [];
  readonly zones: readonly string[];
  now: number;
  #ids = 0;
  readonly #events = new Map<string, number>();

  constructor(zones: readonly string[], now = START) {
    this.zones = zones;
    this.now = now;
  }

  plainStore(): LogStore {
    const { store } = this;
    return {
      read: (...given) => store.read(...given),
      create: (...given) => store.create(...given),
      replace: (...given) => store.replace(...given),
      list: (...given) => store.list(...given),
      remove: (...given) => store.remove(...given),
    };
  }

  desk(store: LogStore = this.store) {
    if (!keys) throw new Error('no keys');
    const log = (line: LogLine) => void this.lines.push(line);
    return { ...keys, store, zones: this.zones, now: () => this.now, log };
  }

  /** A round of a process that has just begun. */
  async commit(zone: string, store: LogStore = this.store): Promise<Round> {
    if (!keys) throw new Error('no keys');
    this.now += 10;
    const { signers } = keys;
    const parts = { store, zone, base: 'audit.example', signers, now: () => this.now, newId: () => this.#newId() };
    const sequencer = new Sequencer(parts);
    const first = await sequencer.round();
    return first.kind === 'beaten' ? sequencer.round() : first;
  }

  #newId(): string {
    this.#ids += 1;
    return eventId(this.#ids, new Uint8Array(10));
  }

  /** So many events more are in the log of a region. */
  async grow(zone: string, count: number): Promise<void> {
    const known = this.#events.get(zone) ?? 0;
    this.#events.set(zone, known + count);
    const events = Array.from({ length: count }, () => ({
      ...{ v: 1, id: this.#newId(), type: 'route', at: this.now, producer: 'edge', tenant: 'acme' },
    }));
    const rows = [{ to: known + count, t: this.now, events }];
    const delivery = { v: 1 as const, producer: `gate/acme/${zone}`, epoch: EPOCH, oldest: known + 1, rows };
    const received = await receive(delivery, this.now, async () => '');
    if (!received) throw new Error('no delivery');
    await this.store.create('intake', nameOfReceived(zone, received), Buffer.from(JSON.stringify(received)));
    while ((await this.commit(zone)).kind !== 'committed');
  }

  /** What one minute brings when nothing goes wrong: what is found half done included. */
  async record(zone: string): Promise<void> {
    await this.commit(HEADS);
    await recordHead(this.desk(), zone);
    await this.commit(HEADS);
  }

  /** What the timer does. */
  async recordAll(): Promise<void> {
    await Promise.all(this.zones.map((zone) => recordHead(this.desk(), zone)));
  }

  /** All of a region that is not on its way. */
  keep(zone: string): readonly Files[] {
    return (['log', 'state'] as const).map(
      (area) => new Map([...this.store.area(area)].filter(([name]) => name.startsWith(`${zone}/`))),
    );
  }

  /** Whoever owns the storage puts a region back to what it was. */
  rollBack(zone: string, to: readonly Files[]): void {
    for (const [at, area] of (['log', 'state'] as const).entries()) {
      const files = this.store.area(area);
      for (const name of files.keys()) if (name.startsWith(`${zone}/`)) files.delete(name);
      for (const [name, kept] of to[at] ?? []) files.set(name, kept);
    }
  }

  #years(zone: string): readonly number[] {
    return [2026, 2027].filter((year) => this.store.area('state').has(`${zone}/${year}/checkpoint`));
  }

  /** The heads in all years, in their order. */
  heads(): readonly Leaf[] {
    const leaves = this.#years(HEADS).flatMap((year) => readStoredLog(this.store, HEADS, year).leaves);
    return leaves.filter((leaf) => readHead(leaf));
  }

  /** What no fault may bring about: a hole, one twice, a step back, a root that the region never had. */
  faults(): string[] {
    const wrong: string[] = [];
    for (const zone of this.zones) {
      const heads = this.heads().filter(({ p }) => p === `region/${zone}`);
      let before: { log: string; size: number } | undefined;
      for (const [at, leaf] of heads.entries()) {
        const found = readHead(leaf)?.head;
        if (!found || leaf.pseq !== at + 1) wrong.push(`${zone}: ${leaf.pseq} is number ${at + 1}`);
        if (!found) continue;
        if (before?.log === found.log && before.size >= found.size) wrong.push(`${zone}: ${found.size} is no growth`);
        const { roots } = readStoredLog(this.store, zone, Number(found.log.split('/').at(-1)), [found.size]);
        if (roots.get(found.size) !== Buffer.from(found.root, 'base64').toString('hex'))
          wrong.push(`${zone}: ${found.size} had another root`);
        before = found;
      }
    }
    return wrong;
  }
}
