import type { Duration, ModelStatistics } from '../../../../shared/kserve/statistics.ts';
import type { FailureReason } from '../refuse.ts';
import type { Durations } from './job.ts';

type Sum = { -readonly [K in keyof Duration]: Duration[K] };
const zero = (): Sum => ({ count: 0, ns: 0 });

function add(sum: Sum, ns: number): void {
  sum.count++;
  sum.ns += Math.round(ns);
}

interface BatchSums {
  readonly input: Sum;
  readonly infer: Sum;
  readonly output: Sum;
}

/**
 * Counters of one model version. Unlike Triton's they outlive a reload: a reset to zero reads as a restarted
 * server.
 */
export class VersionStatistics {
  readonly success = zero();
  readonly fail = zero();
  readonly queue = zero();
  readonly input = zero();
  readonly infer = zero();
  readonly output = zero();
  readonly failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  readonly #batches = new Map<number, BatchSums>();
  inferences = 0;
  executions = 0;
  lastInferenceMs = 0;
  loadSeconds = 0;
  /** Sequences that ended by idle timeout. */
  expiredSequences = 0;

  /** Counts one execution of the network with `size` items. */
  executed(size: number, { input, infer, output }: Omit<Durations, 'queue'>): void {
    this.executions++;
    this.lastInferenceMs = Date.now();
    let sums = this.#batches.get(size);
    if (!sums) {
      sums = { input: zero(), infer: zero(), output: zero() };
      this.#batches.set(size, sums);
    }
    add(sums.input, input);
    add(sums.infer, infer);
    add(sums.output, output);
  }

  succeeded(size: number, totalNs: number, durations: Durations): void {
    this.inferences += Math.max(1, size);
    add(this.success, totalNs);
    add(this.queue, durations.queue);
    add(this.input, durations.input);
    add(this.infer, durations.infer);
    add(this.output, durations.output);
  }

  failed(reason: FailureReason, totalNs: number): void {
    add(this.fail, totalNs);
    this.failures[reason]++;
  }

  describe(name: string, version: number): ModelStatistics {
    const { success, fail, queue, input, infer, output } = this;
    return {
      name,
      version: String(version),
      last_inference: this.lastInferenceMs,
      inference_count: this.inferences,
      execution_count: this.executions,
      inference_stats: {
        success: { ...success },
        fail: { ...fail },
        queue: { ...queue },
        compute_input: { ...input },
        compute_infer: { ...infer },
        compute_output: { ...output },
        cache_hit: zero(),
        cache_miss: zero(),
      },
      batch_stats: [...this.#batches]
        .sort(([a], [b]) => a - b)
        .map(([size, sums]) => ({
          batch_size: size,
          compute_input: { ...sums.input },
          compute_infer: { ...sums.infer },
          compute_output: { ...sums.output },
        })),
    };
  }
}
