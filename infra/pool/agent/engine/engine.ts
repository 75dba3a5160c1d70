import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Refusal } from '../../../../shared/refusal.ts';
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
  /** Trace context (W3C), which Triton takes with `--trace-config mode=opentelemetry`. */
  readonly traceparent?: string | undefined;
  /** Its place in a sequence: the engine keeps state between requests of one id, from `start` to `end`. */
  readonly sequence?: { readonly id: number | string; readonly start: boolean; readonly end: boolean };
}

/** A tensor that a model takes or gives; -1 stands for a dimension that is free. */
export interface EngineTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** State of one model in the index of an engine; `idle`: not loaded, without a failure. */
export type ModelState =
  | { readonly is: 'ready' | 'loading' | 'unloading' | 'idle' }
  | { readonly is: 'failed'; readonly reason: string };

/** Memory of a loaded model, on whichever device holds it. */
export interface ModelMemory {
  readonly bytes: number;
  /** `reported`: counted by the allocator of the engine's backend; `measured`: derived from the files and threads. */
  readonly source: 'reported' | 'measured';
}

/**
 * An inference server and its model repository. Outside a sequence inference is a pure function of its inputs, so
 * repeating it is safe; the caller decides. Refuses with `engine_failed`; the detail names the engine's reason.
 */
export interface Engine {
  /** Reports whether the server and every wanted model is ready; `onFailure` gets the class of a failure. Never rejects. */
  ready(signal: AbortSignal, onFailure?: (reason: string) => void): Promise<boolean>;
  /** Reports whether one model accepts requests. Never rejects. */
  modelReady(model: string, signal: AbortSignal): Promise<boolean>;
  /** Names and shapes, for the check that a model takes what the agent sends. */
  metadata(model: string, signal: AbortSignal): Promise<Result<{ inputs: EngineTensor[]; outputs: EngineTensor[] }>>;
  /** Returns the queues of a loaded model. */
  queues(model: string, signal: AbortSignal): Promise<Result<EngineQueue[]>>;
  /** Refuses with `engine_failed`; the detail says how, and `retryable` whether another try may help. */
  infer(inference: Inference): Promise<InferOutcome>;
  statistics(model: string, signal: AbortSignal): Promise<Result<EngineStatistics>>;
  /** Returns the state of each model of the repository, by name. */
  loaded(signal: AbortSignal): Promise<Result<ReadonlyMap<string, ModelState>>>;
  /**
   * Loads a model and the steps of an ensemble, or takes over their changed files. Concurrent loads of one model are one.
   * An abort ends only the wait: an engine finishes the load that it has begun. Unload an ensemble that was refused:
   * some of its steps may be loaded.
   */
  load(model: string, signal: AbortSignal): Promise<Result<void>>;
  /**
   * Unloads a model and the steps that were loaded for it; resolves when their memory is free. Running requests finish.
   * Succeeds for a model that is not loaded. An abort ends only the wait.
   */
  unload(model: string, signal: AbortSignal): Promise<Result<void>>;
  /** Returns the memory of a loaded model and its steps; `undefined` where the engine does not say. Never rejects. */
  memory(model: string, signal: AbortSignal): Promise<ModelMemory | undefined>;
  /** Reports whether the engine retries a failed load by itself. Never rejects. */
  retriesLoads(signal: AbortSignal): Promise<boolean>;
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
      /** Refusal that the caller reads, where the engine tells more than that it failed. */
      readonly refusal?: Refusal;
    };
