import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Result } from '../../../../shared/result.ts';
import type { EngineStatistics } from '../telemetry/engine-counters.ts';
import type { EngineQueue } from './level.ts';

export interface Inference {
  readonly model: string;
  /** Tensors whose bytes must not change before the answer or the abort of the signal. */
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  /** Level in the engine's queues, 1 the most urgent; 0 where they have none. Not told of a request of a sequence. */
  readonly priority: number;
  /** How long it may wait in the engine's queue, microseconds. */
  readonly timeoutMicros: number;
  readonly signal: AbortSignal;
  /** Its place in a sequence: the engine keeps state between requests of one id, from `start` to `end`. */
  readonly sequence?: { readonly id: number | string; readonly start: boolean; readonly end: boolean };
}

/** A tensor that a model takes or gives; -1 stands for a dimension that is free. */
export interface EngineTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/**
 * An inference server. Outside a sequence inference is a pure function of its inputs, so repeating it is
 * safe; the caller decides.
 */
export interface Engine {
  /** The server and everything it was told to load is ready; `onFailure` hears the class of what went wrong. Never rejects. */
  ready(signal: AbortSignal, onFailure?: (reason: string) => void): Promise<boolean>;
  /** Whether one model can be asked. Never rejects. */
  modelReady(model: string, signal: AbortSignal): Promise<boolean>;
  /** Names and shapes, for the check that a model takes what the agent sends. */
  metadata(model: string, signal: AbortSignal): Promise<Result<{ inputs: EngineTensor[]; outputs: EngineTensor[] }>>;
  /** Returns the queues of a loaded model. */
  queues(model: string, signal: AbortSignal): Promise<Result<EngineQueue[]>>;
  /** Refuses with `engine_failed`; the detail says how, and `retryable` whether another try may help. */
  infer(inference: Inference): Promise<InferOutcome>;
  statistics(model: string, signal: AbortSignal): Promise<Result<EngineStatistics>>;
  close(): void;
}

export type InferOutcome =
  | { readonly ok: true; readonly value: ReadonlyMap<string, Tensor> }
  | {
      readonly ok: false;
      readonly retryable: boolean;
      readonly detail: string;
      /** HTTP status, if the engine answered with one. */
      readonly status?: number;
    };
