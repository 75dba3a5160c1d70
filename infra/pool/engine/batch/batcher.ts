import type { ModelConfig } from '../../models/config/schema.ts';
import type { Clock } from '../clock.ts';
import { refuse } from '../refuse.ts';
import type { Instance } from '../run/instance.ts';
import { admit, decide } from './decide.ts';
import { execute } from './execute.ts';
import type { BatchRequest, Job, Outcome } from './job.ts';
import { type BatchPolicy, batchPolicy } from './policy.ts';
import type { VersionStatistics } from './statistics.ts';

/** One loaded version of a model: its instances, statistics and clock. */
export interface Network {
  readonly config: ModelConfig;
  readonly instances: readonly Instance[];
  readonly statistics: VersionStatistics;
  readonly clock: Clock;
}

/**
 * Queue of one model version and the instances it feeds. `decide` makes the decisions; the batcher holds the
 * entries, sets the alarm and starts executions. Every job ends exactly once: sent, expired, cancelled or
 * drained.
 */
export class Batcher {
  readonly #config: ModelConfig;
  #policy: BatchPolicy;
  readonly #clock: Clock;
  readonly #statistics: VersionStatistics;
  readonly #free: Instance[];
  readonly #instances: readonly Instance[];
  #queue: Job[] = [];
  #turn = 0;
  /** Batches whose answers are pending. */
  #sending = 0;
  #closing = false;
  #corked = false;
  #emptied: (() => void) | undefined;
  #cancelAlarm: (() => void) | undefined;

  constructor(network: Network, policy: BatchPolicy = batchPolicy(network.config)) {
    const { config, instances, statistics, clock } = network;
    this.#config = config;
    this.#policy = policy;
    this.#instances = instances;
    this.#free = [...instances];
    this.#statistics = statistics;
    this.#clock = clock;
  }

  get pending(): number {
    return this.#queue.length;
  }

  enqueue(request: BatchRequest): Promise<Outcome> {
    if (this.#closing) return Promise.resolve(refuse('UNAVAILABLE', 'the model is being unloaded', 'REJECTED'));
    if (request.signal?.aborted) return Promise.resolve(cancelled());
    const now = this.#clock.now();
    const admitted = admit(this.#queue, this.#policy, request, now);
    if (!admitted.ok) return Promise.resolve(refuse('UNAVAILABLE', 'Exceeds maximum queue size', 'REJECTED'));
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const abandon = () => this.#leave(job, cancelled());
    const { size, shape, signal } = request;
    const job: Job = {
      ...admitted.value,
      turn: this.#turn++,
      size,
      shape,
      enqueuedAt: now,
      request,
      finish: (outcome) => {
        signal?.removeEventListener('abort', abandon);
        resolve(outcome);
      },
    };
    signal?.addEventListener('abort', abandon, { once: true });
    this.#queue.push(job);
    this.#advance();
    return promise;
  }

  /** Removes a waiting job from the queue; a running one completes. */
  #leave(job: Job, outcome: Outcome): void {
    const rest = this.#queue.filter((other) => other !== job);
    if (rest.length === this.#queue.length) return;
    this.#queue = rest;
    job.finish(outcome);
    this.#advance();
  }

  /** Queues requests without sending until `uncork`, so that requests that arrive together form one batch. */
  cork(): void {
    this.#corked = true;
  }

  uncork(): void {
    this.#corked = false;
    this.#advance();
  }

  #advance(): void {
    if (this.#corked) return;
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    for (;;) {
      const now = this.#clock.now();
      const { expired, send, wakeAt } = decide(this.#queue, this.#policy, this.#free.length > 0, now);
      const leaving = new Set<Job>([...expired, ...send]);
      this.#queue = this.#queue.filter((job) => !leaving.has(job));
      for (const job of expired) job.finish(refuse('UNAVAILABLE', 'Request timeout expired', 'REJECTED'));
      if (send.length > 0) {
        void this.#send(this.#free.shift()!, send, now);
        continue;
      }
      if (wakeAt !== undefined) this.#cancelAlarm = this.#clock.alarm(wakeAt, () => this.#advance());
      if (this.#queue.length === 0 && this.#sending === 0) this.#emptied?.();
      return;
    }
  }

  async #send(instance: Instance, jobs: readonly Job[], now: number): Promise<void> {
    this.#sending++;
    const outcomes = await execute(this.#config, instance, jobs, { startedAt: now, statistics: this.#statistics });
    this.#free.push(instance);
    this.#advance();
    for (const [index, job] of jobs.entries()) job.finish(outcomes[index]!);
    this.#sending--;
    this.#advance();
  }

  /** Stops delaying batches: no further requests will come. */
  hasten(): void {
    this.#policy = { ...this.#policy, delayUs: 0 };
    this.#advance();
  }

  /** Drains queued and running requests, then closes the instances. New requests are refused at once. */
  async close(): Promise<void> {
    this.#closing = true;
    this.hasten();
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
      this.#advance();
    });
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }
}

export const cancelled = (): Outcome => refuse('CANCELLED', 'Request was cancelled', 'CANCELED');
