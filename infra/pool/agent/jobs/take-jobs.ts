import { readJob, type UploadJob } from '../../../../shared/jobs/job.ts';
import { JOB_VISIBILITY_S } from '../../../../shared/jobs/limits.ts';
import { type Reason, refuse } from '../../../../shared/refusal.ts';
import type { Log } from '../telemetry/log.ts';
import type { JobEnd } from './do-job.ts';
import type { JobQueue, Message } from './job-queue.ts';
import type { BatchMetrics } from './metrics.ts';

/** Interval at which a busy agent checks its capacity for another job. */
const JOB_PAUSE_MS = 250;
/** Delay of a failed job's first return, four times as long each time: most failures are over by then. */
const JOB_RETRY_S = 5;
/**
 * Longest delay of a failed job's return: less than JOB_SILENT_MS, so that functions can tell a waiting job
 * from a lost one.
 */
export const JOB_RETRY_MAX_S = 45;
/** Longest pause between attempts at a queue that does not answer. */
const QUEUE_FAILED_MS = 15_000;

export interface TakerOptions {
  readonly queue: JobQueue;
  /** Jobs of other zones are not for us. */
  readonly zone: string;
  readonly doJob: (job: UploadJob, stopped: AbortSignal) => Promise<JobEnd>;
  /** How many jobs may be taken now, `busy` being at work. */
  readonly capacity: (busy: number) => number;
  readonly metrics: BatchMetrics;
  readonly log: Log;
  readonly now: () => number;
  readonly random?: () => number;
  /** Shorter in tests. */
  readonly keepMs?: number;
  readonly pauseMs?: number;
}

export interface Taker {
  start(): void;
  /** Takes no more; what it has goes on. */
  drain(): void;
  busy(): number;
  /** Resolves once all jobs are done or given back; those that take longer than `milliseconds` are given back. */
  stop(milliseconds: number): Promise<void>;
}

/** Seconds until a job that failed may be taken again, `receives` times taken so far. */
export function retrySeconds(receives: number): number {
  return Math.min(JOB_RETRY_MAX_S, JOB_RETRY_S * 4 ** Math.max(0, receives - 1));
}

/** Failures that the next job would meet as well. */
const others: ReadonlySet<Reason> = new Set<Reason>(['uploads_unavailable', 'engine_failed']);

const pauseOf = (failures: number, random: number) =>
  Math.min(QUEUE_FAILED_MS, JOB_PAUSE_MS * 2 ** failures) * (0.5 + random / 2);

/** Resolves after `milliseconds`, or once `signal` aborts. */
function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}

/** Resolves to a failed end once `stopped` aborts: a stop gives a job back and does not wait for one that hangs. */
function failOnAbort(stopped: AbortSignal): Promise<JobEnd> {
  return new Promise((resolve) => {
    const refusal = refuse('pool_busy', undefined, 'agent stops');
    stopped.addEventListener('abort', () => resolve({ type: 'failed', refusal }), { once: true });
  });
}

const errorName = (error: unknown) => (error instanceof Error ? error.name : 'unknown');

/** Takes jobs while there is room for them, keeps them while they are worked on, and says what came of them. */
export function createTaker(options: TakerOptions): Taker {
  const { queue, log, metrics, now, random = Math.random, pauseMs = JOB_PAUSE_MS } = options;
  const { keepMs = (JOB_VISIBILITY_S * 1_000) / 3 } = options;
  const jobs = new Set<Promise<void>>();
  const draining = new AbortController();
  const stopped = new AbortController();
  const givenUp = failOnAbort(stopped.signal);
  let looping: Promise<void> | undefined;
  let failures = 0;
  /** Consecutive failures of functions or engine: taking more jobs would use up their tries. */
  let troubles = 0;

  /** Waits for a message to the queue and logs its failure. Any job may come again, so the result does not matter. */
  const attempt = (message: Promise<void>): Promise<void> =>
    message.catch((error: unknown) => log('queue-lost', { detail: errorName(error) }));

  async function settle({ receipt, receives }: Message, job: UploadJob, end: JobEnd): Promise<void> {
    metrics.ended(job.kind, end.type === 'failed' || end.type === 'refused' ? end.refusal.reason : end.type);
    if (end.type === 'done' && end.seconds !== undefined) metrics.recorded(job.kind, end.seconds);
    if (end.type === 'failed' || end.type === 'refused') {
      const { reason, detail } = end.refusal;
      log(`job-${end.type}`, { job: job.kind, reason, count: receives, ...(detail !== undefined && { detail }) });
    }
    const trouble = end.type === 'failed' && others.has(end.refusal.reason);
    troubles = trouble ? troubles + 1 : 0;
    if (end.type !== 'failed') await attempt(queue.remove(receipt));
    // A stopping agent says nothing about the job: another agent takes it at once.
    else await attempt(queue.keep(receipt, stopped.signal.aborted ? 0 : retrySeconds(receives)));
  }

  async function handle(message: Message): Promise<void> {
    const job = readJob(message.body);
    if (!job || job.zone !== options.zone) {
      // No agent can run it. It is returned until the queue moves it to the dead letters, where a person
      // finds it.
      log('job-unreadable', { count: message.receives });
      metrics.ended('unreadable', 'unreadable');
      await attempt(queue.keep(message.receipt, 0));
      return;
    }
    const begun = now();
    const keeping = setInterval(() => {
      void attempt(queue.keep(message.receipt, JOB_VISIBILITY_S));
    }, keepMs);
    try {
      const end = await Promise.race([options.doJob(job, stopped.signal), givenUp]);
      clearInterval(keeping);
      await settle(message, job, end);
    } finally {
      clearInterval(keeping);
      metrics.took(job.kind, now() - begun);
    }
  }

  async function receive(count: number): Promise<readonly Message[]> {
    try {
      const messages = await queue.receive(count, draining.signal);
      if (failures > 0) log('queue-back');
      failures = 0;
      return messages;
    } catch (error) {
      if (draining.signal.aborted) return [];
      if (failures === 0) log('queue-lost', { detail: errorName(error) });
      await rest(pauseOf(failures++, random()), draining.signal);
      return [];
    }
  }

  async function loop(): Promise<void> {
    while (!draining.signal.aborted) {
      if (troubles > 0) await rest(pauseOf(troubles, random()), draining.signal);
      const capacity = options.capacity(jobs.size);
      if (capacity <= 0) {
        await rest(pauseMs, draining.signal);
        continue;
      }
      for (const message of await receive(capacity)) {
        const job: Promise<void> = handle(message).finally(() => jobs.delete(job));
        jobs.add(job);
      }
    }
  }

  return {
    start() {
      looping ??= loop();
    },
    drain: () => draining.abort(),
    busy: () => jobs.size,
    async stop(milliseconds) {
      draining.abort();
      await looping;
      const late = setTimeout(() => stopped.abort(), milliseconds);
      while (jobs.size > 0) await Promise.all(jobs);
      clearTimeout(late);
      queue.close();
    },
  };
}
