import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Result } from '../../../../shared/result.ts';
import type { EngineRefusal } from '../refuse.ts';
import type { StateRow } from '../run/instance-messages.ts';
import type { Waiting } from './decide.ts';
import type { Mark } from './sequence-mark.ts';

/** A checked request on its way to a model. */
export interface BatchRequest {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  readonly size: number;
  readonly shape: string;
  readonly priority: number;
  readonly timeoutUs: number;
  readonly signal: AbortSignal | undefined;
  /** Arrival, µs, of a request that waited elsewhere before. */
  readonly arrivedAt?: number;
  /** State row on the instance, for a request of a sequence. */
  readonly place?: Mark & StateRow;
}

/** Nanoseconds a request spent in each stage. */
export interface Durations {
  readonly queue: number;
  readonly input: number;
  readonly infer: number;
  readonly output: number;
}

export type Outcome = Result<{ outputs: readonly Tensor[]; durations: Durations }, EngineRefusal>;

export interface Job extends Waiting {
  readonly request: BatchRequest;
  finish(outcome: Outcome): void;
}
