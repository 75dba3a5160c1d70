// One simulated run: clients, functions, agents and the clock on faulty stores, then without faults, then the
// invariant.

import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { deliver } from '../../../functions/jobs/deliver.ts';
import { grantUpload } from '../../../functions/jobs/grant-upload.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { readRecord, recordKey, type UploadRecord } from '../../../functions/jobs/record.ts';
import { replay } from '../../../functions/jobs/replay.ts';
import { takeOutcome } from '../../../functions/jobs/take-outcome.ts';
import { cancelUpload, rerunUpload } from '../../../functions/jobs/uploads.ts';
import type { ContainerName } from '../../../functions/store/blobs.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { isOver, uploadStatuses } from '../../../shared/jobs/state.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { type UploadUsage, uploadUsage, usageKey } from '../../../shared/jobs/usage.ts';
import {
  BlobModel,
  call,
  type Life,
  Outage,
  openNoticeQueue,
  openQueues,
  QueueModel,
  rough,
  TableModel,
} from '../../fake/storage.ts';
import { runAgent } from './agent-model.ts';
import { admitHead } from './sealed-head.ts';
import { World } from './world.ts';

export const KEY = { kid: 'A'.repeat(43), jwk: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' } } as const;
const ZONES = ['eu', 'us'];
const settings: JobContext['settings'] = {
  ZONES,
  ZONE_KEYS: { eu: [KEY], us: [KEY] },
  MODE: 'development',
  WEBHOOK_KEY: btoa('0123456789abcdef0123456789abcdef'),
};
const HOUR = 3_600_000;
/** Tries of the platform for one event. */
const EVENT_TRIES = 5;
/** A process that never dies. */
export const steady = (): Life => ({ calls: Number.POSITIVE_INFINITY });

/** The edge's bookings of upload usage: each run once, under any number of reports. */
export class Ledger {
  readonly booked = new Map<string, UploadUsage>();
  book(usage: UploadUsage): void {
    if (!this.booked.has(usageKey(usage))) this.booked.set(usageKey(usage), uploadUsage.parse(usage));
  }
}

export interface Sent {
  readonly upload: NewUpload;
  /** The file is in storage as far as its sender knows. */
  accepted: boolean;
}

export class Simulation {
  readonly world: World;
  readonly table: TableModel;
  readonly blobs: BlobModel;
  readonly queues: Map<string, QueueModel>;
  readonly sent: Sent[] = [];
  /** Number of outcomes by upload and run. */
  readonly ends = new Map<string, number>();
  /** Number of deliveries by `webhook-id`. */
  readonly told = new Map<string, number>();
  readonly ledger = new Ledger();
  #active = 0;
  #changes = 0;
  over = false;

  constructor(seed: number) {
    this.world = new World(seed);
    this.table = new TableModel((_, key, before, after) => this.#watch(key, before, after));
    this.blobs = new BlobModel((container, name) => this.#event(container, name));
    this.queues = new Map(ZONES.map((zone) => [zone, new QueueModel(this.world)]));
  }

  office(life: Life = steady()): JobContext {
    const { world } = this;
    return {
      settings,
      now: () => world.now,
      log: () => {},
      rows: this.table.open(world, life, rough),
      blobs: this.blobs.open(world, life, rough),
      jobs: openQueues(world, life, rough, this.queues),
      usage: { book: (usage) => call(world, life, rough, () => this.ledger.book(usage)) },
      notices: openNoticeQueue(world, life, rough, (notice) =>
        this.invoke((office) => deliver(office, (url, headers) => this.#receive(url, headers), notice)),
      ),
    };
  }

  /** Runs a function, with the platform's retries. */
  invoke(work: (office: JobContext) => Promise<void>): void {
    const { world } = this;
    this.#active += 1;
    world.go(async () => {
      for (let tries = 0; tries < EVENT_TRIES; tries += 1) {
        const life: Life = world.bad(0.05) ? { calls: world.between(1, 12) } : steady();
        try {
          await work(this.office(life));
          break;
        } catch (error) {
          if (!(error instanceof Outage) && !/faster too often/.test(String(error))) throw error;
          await world.sleep(world.between(100, 5_000));
        }
      }
      this.#active -= 1;
    });
  }

  async run(clients: (simulation: Simulation) => void): Promise<void> {
    const { world } = this;
    clients(this);
    for (const [zone, queue] of this.queues) {
      for (let agent = 0; agent < 2; agent += 1) world.go(() => runAgent(this, zone, queue, `agent-${zone}-${agent}`));
    }
    world.after(2 * HOUR, () => {
      world.calm = true;
    });
    world.go(() => this.#tick());
    await world.run();
  }

  /** Runs the timer each minute, less often while idle, which is most of the day. */
  async #tick(): Promise<void> {
    const { world } = this;
    let pause = 60_000;
    for (let quiet = 0; quiet < 4; ) {
      await world.sleep(pause);
      const before = this.#changes;
      // The platform skips a run while the former one goes on; a run may also die.
      const life: Life = world.bad(0.1) ? { calls: world.between(1, 60) } : steady();
      await onStalled(this.office(life)).catch((error: unknown) => {
        if (!(error instanceof Outage) && !/faster too often/.test(String(error))) throw error;
      });
      if (world.random() < 0.02) for (const zone of ZONES) await replay(this.office(), zone).catch(() => {});
      const idle = this.#changes === before && this.#active === 0;
      pause = idle ? Math.min(pause * 2, world.calm ? 26 * HOUR : HOUR / 4) : 60_000;
      // The run ends after days without a change, longer than any wait except that for deletion.
      quiet = world.calm && idle && pause >= 26 * HOUR ? quiet + 1 : 0;
    }
    this.over = true;
    for (const queue of this.queues.values()) queue.stop();
  }

  #event(container: ContainerName, name: string): void {
    const { world } = this;
    this.#changes += 1;
    const times = world.bad(0.05) ? 0 : world.bad(0.1) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      world.after(world.between(0, world.bad(0.1) ? 60_000 : 500), () =>
        this.invoke((office) => (container === 'uploads' ? admitFile(office, name) : takeOutcome(office, name))),
      );
    }
  }

  /** Hook for rows of other kinds, for a derived simulation. */
  protected alsoWatch(_key: string, _before: unknown, _after: unknown): void {}

  /** States move forward, within a run, and end once. */
  #watch(key: string, before: unknown, after: unknown): void {
    this.#changes += 1;
    this.alsoWatch(key, before, after);
    if (!key.startsWith('u!') || !after) return;
    const [from, to] = [before as UploadRecord | undefined, after as UploadRecord];
    const rank = (record: UploadRecord) => uploadStatuses.indexOf(record.state.status);
    const fail = (why: string) => {
      this.world.bugs.push(new Error(`${why}: ${from?.state.status} → ${to.state.status}`));
    };
    if (from) {
      if (to.state.run === from.state.run) {
        if (isOver(from.state.status) && to.state.status !== from.state.status) fail('an end was changed');
        if (rank(to) < rank(from)) fail('a state went back');
      } else if (to.state.run !== from.state.run + 1 || !isOver(from.state.status)) fail('a run began by itself');
      if (to.state.seq < from.state.seq) fail('the sequence went back');
    }
    if (isOver(to.state.status) && !(from && isOver(from.state.status))) {
      const run = `${to.id}.${to.state.run}`;
      this.ends.set(run, (this.ends.get(run) ?? 0) + 1);
    }
  }

  async #receive(_: string, headers: Record<string, string>): Promise<{ status: number } | { failure: string }> {
    const { world } = this;
    await world.turn();
    if (world.bad(0.2)) return { failure: 'late' };
    const id = headers['webhook-id'] ?? '';
    this.told.set(id, (this.told.get(id) ?? 0) + 1);
    return world.bad(0.2) ? { status: 500 } : { status: 200 };
  }

  record({ tenant, id }: Pick<NewUpload, 'tenant' | 'id'>): UploadRecord | undefined {
    const row = this.table.read(tenant, recordKey(id));
    return row && readRecord(row);
  }

  /** A client requests an upload, sends the file, and then acts at random. */
  client(number: number): void {
    const { world } = this;
    world.go(async () => {
      await world.sleep(world.between(0, HOUR / 4));
      const random = Uint8Array.from({ length: 10 }, () => world.between(0, 256));
      const sealed = world.random() < 0.7;
      const upload: NewUpload = {
        id: eventId(world.now, random),
        tenant: world.pick(['acme', 'zebra']),
        class: world.pick(['batch', 'default']),
        model: 'm',
        sealed,
        formats: ['json'],
        zone: world.pick(ZONES),
        keepDays: world.random() < 0.4 ? 1 : 0,
        ...(world.random() < 0.3 && { callback: 'http://receiver.test/' }),
      };
      const pieces = world.random() < 0.05 ? 'bad' : world.pick([1, 1, 2, 3, 5]);
      const content = contentOf(upload, pieces, number);
      const asked = {
        ...upload,
        ...(world.random() < 0.5 && { bytes: content.length + (world.random() < 0.05 ? 1 : 0) }),
      };
      const url = await this.#insist(async () => {
        const granted = await grantUpload(this.office(), asked);
        // A client that repeated its request does not wait for the first answer.
        return granted.ok ? granted.value.url : undefined;
      });
      if (url === undefined) return;
      const sent: Sent = { upload: asked, accepted: false };
      this.sent.push(sent);
      if (world.random() < 0.05) return;
      await world.sleep(world.between(0, HOUR / 2));
      const put = (bytes: Uint8Array) =>
        this.#insist(() => call(world, steady(), rough, () => this.blobs.put(url, bytes)));
      await put(content);
      sent.accepted = true;
      if (world.random() < 0.05) {
        await world.sleep(world.between(0, HOUR));
        await put(contentOf(upload, 2, number + 1_000));
      }
      if (world.random() < 0.15) {
        await world.sleep(world.between(0, HOUR));
        await cancelUpload(this.office(), upload).catch(() => {});
      }
      // Includes moments right after an outcome and around the deletion of the audio.
      for (let more = 0; more < 2 && world.random() < 0.35; more += 1) {
        await world.sleep(world.random() < 0.2 ? world.between(22 * HOUR, 26 * HOUR) : world.between(0, 3 * HOUR));
        await rerunUpload(this.office(), upload).catch(() => {});
      }
    });
  }

  async #insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof Outage)) throw error;
        await this.world.sleep(this.world.between(100, 10_000));
      }
    }
  }
}

/** Content of a file: a head if it is sealed, then the data of the agent double. */
function contentOf(upload: NewUpload, pieces: number | 'bad', number: number): Uint8Array {
  const sound = new TextEncoder().encode(JSON.stringify({ pieces, number }));
  return upload.sealed ? Uint8Array.from([...admitHead(upload.tenant, upload.id, KEY.kid), ...sound]) : sound;
}
