// Storage account and queues of a simulated run, with the promises of the real ones and no more. Every call
// may fail before or after its effect, or be slow; messages and events may be late, duplicated or lost.
import type { BlobFacts, Blobs, ContainerName } from '../../functions/store/blobs.ts';
import type { DeadJob, Jobs, Messages, QueueOf } from '../../functions/store/jobs.ts';
import { JOB_RECEIVES_MAX } from '../../functions/store/jobs.ts';
import type { Notice, Notices } from '../../functions/store/notices.ts';
import type { Rows } from '../../functions/store/rows.ts';
import { readJob } from '../../shared/jobs/job.ts';
import { JOB_VISIBILITY_S } from '../../shared/jobs/limits.ts';
import type { World } from '../fault/batch/world.ts';
import { Table } from './rows.ts';

/** Error of a call without an answer. */
export class Outage extends Error {}

/** A process that runs calls. It dies in the middle of the last one. */
export interface Life {
  calls: number;
}

export interface Rates {
  readonly failed: number;
  readonly persisted: number;
  readonly slow: number;
  readonly slowMs: number;
}

export const rough: Rates = { failed: 0.02, persisted: 0.02, slow: 0.02, slowMs: 120_000 };

/** Shared instances: only their class matters, and a stack trace each would cost more than the call. */
const died = new Outage('died');
const failed = new Outage('failed');
const persisted = new Outage('failed, but had happened');

/** Runs one call with a random fault. */
export async function call<T>(world: World, life: Life, rates: Rates, effect: () => T): Promise<T> {
  await world.turn();
  life.calls -= 1;
  const dies = life.calls === 0;
  if (life.calls < 0 || (dies && world.random() < 0.5)) throw died;
  if (world.bad(rates.slow)) await world.sleep(world.between(0, rates.slowMs));
  if (world.bad(rates.failed)) throw failed;
  const result = effect();
  if (dies || world.bad(rates.persisted)) throw persisted;
  return result;
}

/** Rows whose calls may fail. */
export class TableModel extends Table {
  open(world: World, life: Life, rates: Rates): Rows {
    return {
      ensure: async () => {},
      read: (partition, key) => call(world, life, rates, () => this.read(partition, key)),
      scan: (partition, from, to, limit) => call(world, life, rates, () => this.scan(partition, from, to, limit)),
      commit: (partition, changes) => call(world, life, rates, () => this.commit(partition, changes)),
    };
  }
}

interface StoredBlob {
  content: Uint8Array;
  etag: string;
  metadata: Readonly<Record<string, string>>;
}

export class BlobModel {
  readonly blobs = new Map<string, StoredBlob>();
  /** Places by container, tenant and id: lists are of one upload. */
  readonly #ofUpload = new Map<string, Set<string>>();
  written = 0;
  removed = 0;
  #version = 0;
  readonly #event: (container: ContainerName, name: string) => void;

  constructor(event: (container: ContainerName, name: string) => void) {
    this.#event = event;
  }

  /** Writes through an address: `create` leaves an existing blob alone and reports it. */
  put(address: string, content: Uint8Array, metadata: Record<string, string> = {}): 'written' | 'exists' {
    const [, right, place = ''] = /^mem:(create|write):(.*)$/.exec(address) ?? [];
    if (right === undefined) throw new Error('the address does not write');
    const there = this.blobs.get(place);
    if (right === 'create' && there) return 'exists';
    this.removed += there?.content.length ?? 0;
    this.written += content.length;
    this.#version += 1;
    this.blobs.set(place, { content, etag: `"${this.#version}"`, metadata });
    const upload = uploadOf(place);
    const known = this.#ofUpload.get(upload) ?? new Set<string>();
    this.#ofUpload.set(upload, known.add(place));
    const slash = place.indexOf('/');
    this.#event(place.slice(0, slash) as ContainerName, place.slice(slash + 1));
    return 'written';
  }

  get(address: string): StoredBlob | undefined {
    const [, place] = /^mem:read:(.*)$/.exec(address) ?? [];
    if (place === undefined) throw new Error('the address does not read');
    return this.blobs.get(place);
  }

  open(world: World, life: Life, rates: Rates): Blobs {
    const facts = (place: string, name: string): BlobFacts | undefined => {
      const blob = this.blobs.get(place);
      return blob && { name, bytes: blob.content.length, etag: blob.etag, metadata: blob.metadata };
    };
    return {
      ensure: async () => {},
      find: (container, name) => call(world, life, rates, () => facts(`${container}/${name}`, name)),
      start: (container, { name, etag }, length) =>
        call(world, life, rates, () => {
          const blob = this.blobs.get(`${container}/${name}`);
          return blob?.etag === etag ? blob.content.slice(0, length) : undefined;
        }),
      list: (container, prefix) =>
        call(world, life, rates, () =>
          [...(this.#ofUpload.get(uploadOf(`${container}/${prefix}`)) ?? [])]
            .filter((place) => place.startsWith(`${container}/${prefix}`))
            .flatMap((place) => facts(place, place.slice(container.length + 1)) ?? []),
        ),
      create: (container, name, bytes) =>
        call(world, life, rates, () =>
          this.put(`mem:create:${container}/${name}`, bytes) === 'written' ? 'created' : 'exists',
        ),
      remove: (container, name) =>
        call(world, life, rates, () => {
          const place = `${container}/${name}`;
          this.removed += this.blobs.get(place)?.content.length ?? 0;
          this.blobs.delete(place);
          this.#ofUpload.get(uploadOf(place))?.delete(place);
        }),
      address: async (container, name, right) => `mem:${right}:${container}/${name}`,
    };
  }
}

/** `outcomes/acme/ID/1/plan` → `outcomes/acme/ID`. */
const uploadOf = (place: string): string => place.split('/', 3).join('/');

export interface Message {
  readonly body: string;
  visible: number;
  receives: number;
  receipt: number;
}

/** The queues of one zone. */
export class QueueModel {
  readonly messages: Message[] = [];
  readonly dead: Message[] = [];
  #receipts = 0;
  readonly #idle: (() => void)[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  send(body: string): void {
    // The service loses no message; a killed emulator does.
    if (this.#world.bad(0.01)) return;
    const delay = this.#world.bad(0.1) ? this.#world.between(0, 60_000) : 0;
    const message = { body, visible: this.#world.now + delay, receives: 0, receipt: 0 };
    this.messages.push(message);
    this.#wakeAt(message.visible);
    // At-least-once delivery: now and then a message is duplicated.
    if (this.#world.bad(0.02)) this.messages.push({ ...message });
  }

  receive(): Message | undefined {
    const { now } = this.#world;
    for (const message of this.messages.filter(({ visible }) => visible <= now)) {
      if (message.receives < JOB_RECEIVES_MAX) continue;
      this.messages.splice(this.messages.indexOf(message), 1);
      this.dead.push(message);
    }
    const visible = this.messages.filter((message) => message.visible <= now);
    if (visible.length === 0) return undefined;
    const message = this.#world.pick(visible);
    message.receives += 1;
    this.keep(message, JOB_VISIBILITY_S * 1_000);
    message.receipt = ++this.#receipts;
    return { ...message };
  }

  count({ model, light }: QueueOf): Messages {
    const ours = this.messages.filter(({ body }) => {
      const job = readJob(body);
      return job?.model === model && job?.light === light;
    });
    const waiting = ours.filter(({ visible }) => visible <= this.#world.now).length;
    return { waiting, taken: ours.length - waiting };
  }

  keep(message: Message, ms: number): void {
    message.visible = this.#world.now + ms;
    this.#wakeAt(message.visible);
  }

  remove({ receipt }: Message): void {
    const index = this.messages.findIndex((message) => message.receipt === receipt);
    if (index >= 0) this.messages.splice(index, 1);
  }

  /** Releases all waiters. */
  stop(): void {
    for (const wake of this.#idle.splice(0)) wake();
  }

  /** Resolves when there may be a message. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #wakeAt(at: number): void {
    this.#world.after(Math.max(0, at - this.#world.now), () => this.stop());
  }
}

export function openQueues(world: World, life: Life, rates: Rates, queues: ReadonlyMap<string, QueueModel>): Jobs {
  const of = (zone: string): QueueModel => queues.get(zone) as QueueModel;
  return {
    ensure: async () => {},
    send: (jobs) =>
      call(world, life, rates, () => {
        // The service may accept a batch in part.
        const taken = jobs.filter(() => !world.bad(0.02));
        for (const job of taken) of(job.zone).send(JSON.stringify(job));
        return taken;
      }),
    depth: async () => ({ waiting: 0, taken: 0, dead: 0 }),
    messages: (job) => call(world, life, rates, () => of(job.zone).count(job)),
    takeDead: (zone) =>
      call(world, life, rates, () =>
        of(zone).dead.map((message): DeadJob => ({ body: message.body, receipt: String(message.receipt) })),
      ),
    deleteDead: (zone, { receipt }) =>
      call(world, life, rates, () => {
        const { dead } = of(zone);
        const index = dead.findIndex((message) => String(message.receipt) === receipt);
        if (index >= 0) dead.splice(index, 1);
      }),
  };
}

export function openNoticeQueue(world: World, life: Life, rates: Rates, arrives: (notice: Notice) => void): Notices {
  return {
    ensure: async () => {},
    send: (notice) =>
      call(world, life, rates, () => {
        const times = world.bad(0.02) ? 0 : world.bad(0.05) ? 2 : 1;
        for (let time = 0; time < times; time += 1) world.after(world.between(0, 5_000), () => arrives(notice));
      }),
  };
}
