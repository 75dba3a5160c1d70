import { jobQueue, lightQueue } from '../../../../shared/jobs/job.ts';
import { classes } from '../../../../shared/tenant/claims.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import type { Keys } from '../identity/keys.ts';
import type { ZoneKeyring } from '../identity/zone-key.ts';
import type { Settings } from '../settings/settings.ts';
import { createStorage } from '../storage/storage.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { doJob } from './do-job.ts';
import { createBatchMetrics } from './metrics.ts';
import { createShare } from './share.ts';
import { createTaker, type Taker } from './take-jobs.ts';
import { createJobsClient } from './task/jobs-client.ts';
import type { Workshop } from './task/task.ts';

/**
 * Concurrent light jobs of one agent: a segment is a few hundred kilobytes, and most of its time is storage
 * and queue.
 */
const LIGHT_JOBS_MAX = 8;

export interface BatchOptions {
  readonly settings: Settings;
  readonly batch: NonNullable<Settings['batch']>;
  readonly keys: Keys;
  /** Reads the pool token. */
  readonly token: () => string;
  readonly keyring: ZoneKeyring;
  readonly dispatcher: Dispatcher;
  readonly metrics: Metrics;
  readonly model: Workshop['model'];
  readonly lease: Workshop['lease'];
  readonly detector: Workshop['detector'];
  /** Names of the served models, and of the families that wait for detection: only their jobs are taken. */
  readonly models: () => readonly string[];
  /** The engine is there. */
  readonly ready: () => boolean;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Batch work of an agent (C11): it takes jobs of its zone from the queue while it has nothing better to do. Starts
 * nothing yet.
 */
export async function openBatch(options: BatchOptions): Promise<Taker> {
  const { settings, batch, keys, token, keyring, dispatcher, metrics, now } = options;
  // Loaded only where it is needed: it is the largest thing an agent can have in memory.
  const { openSqs } = await import('./job-queue.ts');
  /** One slot stays free of jobs, so that an urgent request never waits for all of them. */
  const slots = Math.max(1, settings.slots - 1);
  const share = createShare(dispatcher, slots);
  const shop: Workshop = {
    agent: settings.agent,
    now,
    jobsClient: createJobsClient({
      url: batch.functionsUrl,
      agent: settings.agent,
      keys,
      token,
      now,
    }),
    storage: createStorage(),
    keyring,
    dispatcher: { ...dispatcher, ...share },
    metrics,
    model: options.model,
    lease: options.lease,
    detector: options.detector,
  };
  /** Reports whether no request waits and the engine has a free slot. */
  const isIdle = () => {
    const queued = dispatcher.queued();
    return options.ready() && classes.every((name) => queued[name] === 0) && dispatcher.busy() < settings.slots;
  };
  const batchMetrics = createBatchMetrics(metrics.registry, () => busyIn(takers));
  const take = (queues: () => string[], most: number): Taker =>
    createTaker({
      queue: openSqs({ queues, region: batch.region, endpoint: batch.endpoint }),
      zone: settings.zone,
      doJob: (job, stopped) => doJob(shop, job, stopped),
      // While others are at work their pieces use the spare slots; further jobs overlap what is no recognising.
      capacity: (busy) => (isIdle() ? most - busy : 0),
      metrics: batchMetrics,
      log: options.log,
      now,
    });
  const voices = () => options.models().filter((name) => options.model(name)?.speaker);
  const takers: Taker[] = [
    take(() => options.models().map((name) => jobQueue(batch.queue, settings.zone, name)), batch.jobs),
    // Pools without accelerators have a queue to themselves, too (T5): what is light comes there first.
    ...(settings.accelerator === 'cpu'
      ? [take(() => voices().map((name) => lightQueue(batch.queue, settings.zone, name)), LIGHT_JOBS_MAX)]
      : []),
  ];
  return together(takers);
}

const busyIn = (takers: readonly Taker[]): number => takers.reduce((sum, taker) => sum + taker.busy(), 0);

const together = (takers: readonly Taker[]): Taker => ({
  start: () => takers.forEach((taker) => void taker.start()),
  drain: () => takers.forEach((taker) => void taker.drain()),
  busy: () => busyIn(takers),
  stop: async (milliseconds) => void (await Promise.all(takers.map((taker) => taker.stop(milliseconds)))),
});
