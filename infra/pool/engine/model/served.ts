import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Result } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { Durations } from '../batch/batcher.ts';
import type { EngineRefusal } from '../refuse.ts';
import type { Mark } from '../sequence/mark.ts';
import type { Call } from './check-request.ts';
import type { VersionStatistics } from './statistics.ts';

export type Answer = Result<{ outputs: readonly Tensor[]; durations: Durations }, EngineRefusal>;

/** One version of a model that takes requests: a network with its batcher, or an ensemble. */
export interface Served {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly statistics: VersionStatistics;
  /** Requests waiting in the queue now. */
  readonly pending: number;
  /** Whether a sequence id means something to it. */
  readonly takesSequences: boolean;
  /** Sequences that have begun and not ended; undefined for what keeps none itself. */
  readonly sequences: number | undefined;
  /** A request of this sequence was cancelled before it got here: nothing may continue over the gap. */
  breakSequence(mark: Mark): void;
  infer(call: Call): Promise<Answer>;
  /** Finishes what is queued and running, then gives the memory back. */
  close(): Promise<void>;
}
