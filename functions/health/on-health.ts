import type { HttpResponseInit } from '@azure/functions';
import type { LogHealth } from '../../shared/audit/health.ts';
import { isStorageFull } from '../../shared/storage-full.ts';
import type { Stores } from '../store/stores.ts';
import { decideHealth, type Trial } from './decide-health.ts';

/** Time after which a silent store counts as unreachable. */
const STORE_HEALTH_MS = 2_000;

interface Ensured {
  ensure(signal: AbortSignal): Promise<void>;
}

/** The probe of every store: its `ensure` call. */
export type HealthStores = {
  readonly [Name in keyof Stores as Stores[Name] extends Ensured ? Name : never]: Ensured;
};

async function tryStores(stores: HealthStores, log: (line: string) => void, now: () => number): Promise<Trial[]> {
  const trial = async (store: string, ensure: (signal: AbortSignal) => Promise<void>): Promise<Trial> => {
    const startedAt = now();
    const took = () => Math.round(now() - startedAt);
    try {
      await ensure(AbortSignal.timeout(STORE_HEALTH_MS));
      return { store, reached: true, tookMs: took() };
    } catch (error) {
      const full = isStorageFull(error);
      const reason = error instanceof Error ? error.message : 'unknown reason';
      log(full ? `${store}: storage is full` : `${store} cannot be reached: ${reason}`);
      return { store, reached: false, tookMs: took(), ...(full && { full }) };
    }
  };
  return Promise.all([
    trial('blobs', (signal) => stores.blobs.ensure(signal)),
    trial('jobs', (signal) => stores.jobs.ensure(signal)),
    trial('rows', (signal) => stores.rows.ensure(signal)),
    trial('notices', (signal) => stores.notices.ensure(signal)),
  ]);
}

/** Returns the names of the stores that refuse writes because they are full. */
export async function findFullStores(stores: HealthStores): Promise<string[]> {
  const trials = await tryStores(stores, () => {}, Date.now);
  return trials.flatMap(({ store, full }) => (full ? [store] : []));
}

/**
 * HTTP GET /api/health: probes the stores with `ensure`, so that the first health check of a fresh account
 * creates what is missing. The reason of a failure goes to our log, never to the caller.
 */
export async function onHealth(
  stores: HealthStores,
  log: (line: string) => void,
  now: () => number = () => performance.now(),
  logs?: () => Promise<Record<string, LogHealth | null>>,
): Promise<HttpResponseInit> {
  const [trials, audit] = await Promise.all([
    tryStores(stores, log, now),
    // The state of the logs is reported and decides nothing: events wait in the outboxes of their producers.
    logs?.(),
  ]);
  const { status, body } = decideHealth(trials);
  return { status, jsonBody: { ...body, ...(audit && { audit }) }, headers: { 'cache-control': 'no-store' } };
}
