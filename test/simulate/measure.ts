// Figures of one run, and their means over seeds.
import type { RequestClass } from '../../shared/tenant/claims.ts';

/**
 * Deadlines: time that a request may wait before the engine begins, ms, by class. A speaker notices a third of a second, a
 * person who sent a recording waits some seconds, programs give up after half a minute and jobs after minutes.
 */
export const WAIT_MS_MAX: Readonly<Record<RequestClass, number>> = {
  realtime: 300,
  interactive: 5_000,
  default: 30_000,
  batch: 120_000,
};

export interface Figures {
  readonly requests: number;
  /** Mean milliseconds from the request to its answer, and the 99th percentile. */
  readonly answerMs: number;
  readonly answerP99Ms: number;
  /** Mean milliseconds of that in which no engine worked on it and nothing travelled; those of realtime requests. */
  readonly waitMs: number;
  readonly realtimeWaitMs: number;
  /** Share of the realtime requests that began in time. */
  readonly realtimeInDeadline: number;
  /** Work answered in time, as a share of what was offered or of what the fleet can do, if that is less. */
  readonly goodput: number;
  /** Share of requests without an answer. */
  readonly failed: number;
  /** Attempts outside the zones of their tenant. */
  readonly breaches: number;
  /** Share of the sessions that the revision on trial served. */
  readonly canary: number;
  /** Requests for each slot of the busiest agent, over the mean of all agents. */
  readonly imbalance: number;
}

export interface Sample {
  readonly class: RequestClass;
  readonly answerMs: number;
  readonly waitMs: number;
  /** Size of the work; 1 is the mean. */
  readonly size: number;
  /** The revision on trial served it. */
  readonly trialed: boolean;
}

/** Largest sample of answer times for percentiles; beyond it every second one is dropped. */
const SAMPLES_MAX = 1 << 16;

/** Collects the outcome of requests. */
export class Collector {
  requests = 0;
  failed = 0;
  breaches = 0;
  #answers: number[] = [];
  #every = 1;
  #seen = 0;
  #answerSum = 0;
  #waitSum = 0;
  #canary = 0;
  #useful = 0;
  #offered = 0;
  #realtime = { served: 0, all: 0, inTime: 0, waitSum: 0 };

  offer(name: RequestClass, size: number): void {
    this.requests += 1;
    this.#offered += size;
    if (name === 'realtime') this.#realtime.all += 1;
  }

  served({ class: name, answerMs, waitMs, size, trialed }: Sample): void {
    this.#seen += 1;
    this.#answerSum += answerMs;
    if (trialed) this.#canary += 1;
    this.#waitSum += waitMs;
    if (this.#seen % this.#every === 0) this.#answers.push(answerMs);
    if (this.#answers.length > SAMPLES_MAX) {
      this.#answers = this.#answers.filter((_, at) => at % 2 === 0);
      this.#every *= 2;
    }
    const inTime = waitMs <= WAIT_MS_MAX[name];
    if (inTime) this.#useful += size;
    if (name !== 'realtime') return;
    this.#realtime.served += 1;
    this.#realtime.waitSum += waitMs;
    if (inTime) this.#realtime.inTime += 1;
  }

  /** `possible`: work that the fleet can do in the counted time. `imbalance`: as in `Figures`. */
  figures(possible: number, imbalance: number): Figures {
    const sorted = this.#answers.toSorted((a, b) => a - b);
    const share = (part: number, all: number) => (all > 0 ? part / all : 0);
    return {
      requests: this.requests,
      answerMs: share(this.#answerSum, this.#seen),
      answerP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      waitMs: share(this.#waitSum, this.#seen),
      realtimeWaitMs: share(this.#realtime.waitSum, this.#realtime.served),
      realtimeInDeadline: share(this.#realtime.inTime, this.#realtime.all),
      goodput: share(this.#useful, Math.min(possible, this.#offered)),
      failed: share(this.failed, this.requests),
      breaches: this.breaches,
      canary: share(this.#canary, this.#seen),
      imbalance,
    };
  }
}

/** Mean over seeds, and half of its 95 % confidence interval (Student's t). */
export interface Estimate {
  readonly mean: number;
  readonly plusMinus: number;
}

/** Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1. */
const STUDENT = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
const NORMAL = 1.96;

export function estimate(values: readonly number[]): Estimate {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length < 2) return { mean, plusMinus: 0 };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { mean, plusMinus: (STUDENT[values.length - 2] ?? NORMAL) * Math.sqrt(variance / values.length) };
}
