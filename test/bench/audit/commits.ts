// Throughput of a log, and the time until an event is verifiable.
import { BlobServiceClient } from '@azure/storage-blob';
import type { Received } from '../../../functions/audit/intake/intake.ts';
import { newestState, upToOf } from '../../../functions/audit/log/acknowledge.ts';
import { openBlobLogStore } from '../../../functions/audit/log/blob-log-store.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { hideFor, Producer } from './events.ts';

const SENDERS = 8;
/** Events of a delivery: an outbox sends what has come in half a second, at most 256 rows. */
const BATCH = 125;
const TICK_MS = 1_000;
const SEND_MS = 500;

const key = await openSigningKey(new Uint8Array(32).fill(1));
let zones = 0;

async function openLog(connection: string) {
  zones += 1;
  const zone = `bench${zones}`;
  const store = openBlobLogStore(connection);
  await store.ensure(AbortSignal.timeout(10_000));
  const newId = () => eventId(Date.now(), crypto.getRandomValues(new Uint8Array(10)));
  const signers = (name: string) => [key.signer(name)];
  const sequencer = new Sequencer({ store, zone, base: 'bench', signers, now: () => Date.now(), newId });
  return { zone, store, hide: hideFor(store, zone), sequencer };
}

export const quantile = (values: readonly number[], at: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * at))] ?? Number.NaN;

export interface Rates {
  /**
   * Events a second from the first delivery into the intake to the published checkpoint with the last event.
   */
  readonly log: number;
  /** The same with all deliveries stored before the clock starts. */
  readonly waiting: number;
  /** The same with salts, commitments and encryption in the same process. */
  readonly alone: number;
}

export async function measureEvents(connection: string, count: number): Promise<Rates> {
  const { zone, store, hide, sequencer } = await openLog(connection);
  const producers = Array.from({ length: SENDERS }, (_, at) => new Producer(zone, `t${at}`));
  const each = Math.ceil(count / SENDERS / BATCH);
  const total = each * SENDERS * BATCH;
  const prepareAll = () =>
    Promise.all(
      producers.map(async (one) => {
        const made: Received[] = [];
        for (let done = 0; done < each; done += 1) made.push(await one.prepare(BATCH, hide));
        return made;
      }),
    );
  const storeAll = (prepared: readonly (readonly Received[])[]) =>
    Promise.all(
      producers.map(async (one, at) => {
        for (const received of prepared[at] ?? []) await one.store(store, received);
      }),
    );
  const commitAll = async (until = total) => {
    for (let done = 0; done < until; ) done += (await sequencer.round()).entries;
  };
  const rate = async (work: () => Promise<unknown>) => {
    const began = performance.now();
    await work();
    return total / ((performance.now() - began) / 1_000);
  };
  // Warm-up: one-time work (keys of tenants and subjects, compilers) is not measured.
  await storeAll(await prepareAll());
  const waiting = await rate(commitAll);
  const prepared = await prepareAll();
  const log = await rate(() => Promise.all([storeAll(prepared), commitAll()]));
  const send = async (one: Producer) => {
    for (let done = 0; done < each; done += 1) await one.store(store, await one.prepare(BATCH, hide));
  };
  const alone = await rate(() => Promise.all([...producers.map(send), commitAll()]));
  return { log, waiting, alone };
}

/** Appends the same events to a blob: a log without verification, as the baseline. */
export async function measureAppends(connection: string, count: number): Promise<number> {
  const container = BlobServiceClient.fromConnectionString(connection).getContainerClient(`plain${Date.now()}`);
  await container.create();
  const blob = container.getAppendBlobClient('log');
  await blob.create();
  const producers = Array.from({ length: SENDERS }, (_, at) => new Producer('bench', `t${at}`));
  const each = Math.ceil(count / SENDERS / BATCH);
  const began = performance.now();
  await Promise.all(
    producers.map(async (one) => {
      for (let sent = 0; sent < each; sent += 1) {
        const lines = one.make(BATCH).rows.map(({ events }) => `${JSON.stringify(events[0])}\n`);
        const text = lines.join('');
        await blob.appendBlock(text, Buffer.byteLength(text));
      }
    }),
  );
  return (each * SENDERS * BATCH) / ((performance.now() - began) / 1_000);
}

export interface Latencies {
  /** Milliseconds from the delivery of an outbox to its answer, and to the published checkpoint. */
  readonly taken: readonly number[];
  readonly published: readonly number[];
}

/** `rate` events a second for some seconds, and a tick a second. */
export async function measurePublish(connection: string, rate: number, seconds: number): Promise<Latencies> {
  const { zone, store, hide, sequencer } = await openLog(connection);
  const producers = Array.from({ length: 4 }, (_, at) => new Producer(zone, `t${at}`));
  const share = Math.round((rate * SEND_MS) / 1_000 / producers.length);
  const [taken, published]: number[][] = [[], []];
  const waiting: { producer: Producer; last: number; at: number }[] = [];
  let open = true;
  const sending = producers.map(async (producer, place) => {
    await pause((place * SEND_MS) / producers.length);
    const began = performance.now();
    for (let sent = 0; sent < (seconds * 1_000) / SEND_MS; sent += 1) {
      const at = performance.now();
      const last = await producer.store(store, await producer.prepare(share, hide));
      taken?.push(performance.now() - at);
      waiting.push({ producer, last, at });
      await pause(began + (sent + 1) * SEND_MS - performance.now());
    }
  });
  const ticking = (async () => {
    while (open || waiting.length > 0) {
      const began = performance.now();
      while ((await sequencer.round()).kind !== 'idle');
      const [state, now] = [await newestState(store, zone), performance.now()];
      for (const one of waiting.splice(0)) {
        if (upToOf(state, one.producer.producer, one.producer.epoch) >= one.last) published?.push(now - one.at);
        else waiting.push(one);
      }
      await pause(began + TICK_MS - performance.now());
    }
  })();
  await Promise.all(sending);
  open = false;
  await ticking;
  return { taken: taken ?? [], published: published ?? [] };
}

const pause = (ms: number): Promise<void> => new Promise((settle) => setTimeout(settle, Math.max(0, ms)));
