import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Result } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { Durations } from '../batch/job.ts';
import type { Mark } from '../batch/sequence-mark.ts';
import type { VersionStatistics } from '../batch/statistics.ts';
import type { EngineRefusal } from '../refuse.ts';
import type { Call } from './check-request.ts';

export type Answer = Result<{ outputs: readonly Tensor[]; durations: Durations }, EngineRefusal>;

/** A use of a served version. Its unload waits for the release, so requests under a lease are finished. */
export interface Lease {
  /** The model accepts sequence ids. */
  readonly takesSequences: boolean;
  /**
   * Breaks the sequence of a request that was cancelled on its way: later requests must not continue over the
   * gap.
   */
  breakSequence(mark: Mark): void;
  infer(call: Call): Promise<Answer>;
  release(): void;
}

/** A served version of a model: a network with its batcher, or an ensemble. */
export interface Served {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly statistics: VersionStatistics;
  /** Requests waiting in the queue now. */
  readonly pending: number;
  /** The model accepts sequence ids. */
  readonly takesSequences: boolean;
  /** Active sequences; undefined for a model without sequences of its own. */
  readonly sequences: number | undefined;
  /** Memory of the weights and threads, measured at the load; 0 for an ensemble, whose steps have it. */
  readonly memoryBytes: number;
  infer(call: Call): Promise<Answer>;
  lease(): Lease;
  /** Waits for leases, drains queued and running requests, then frees the memory. */
  close(): Promise<void>;
}
