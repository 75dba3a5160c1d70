import type { Datatype } from '../../../../shared/kserve/datatype.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';

/** Description of a tensor in a model file; -1 is a free dimension. */
export interface TensorInfo {
  readonly name: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
}

export interface ModelInfo {
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
}

export interface ThreadData {
  readonly modelPath: string;
  readonly intraThreads: number;
  readonly interThreads: number;
  /** The first dimension of every tensor is the batch. */
  readonly batched: boolean;
  /** Tensors that the thread stores between the requests of a sequence. */
  readonly states: readonly StateInfo[];
}

/** An implicit state: `output` of one request is `input` of the sequence's next. */
export interface StateInfo {
  readonly input: string;
  readonly output: string;
  readonly datatype: Datatype;
  /** Initial shape, without the batch. */
  readonly dims: readonly number[];
  /** Initial bytes of a sequence. */
  readonly initial: Uint8Array;
}

/** State slot of one row of the batch. */
export interface StateRow {
  /** Slot of the sequence on this instance. */
  readonly slot: number;
  readonly start: boolean;
  readonly end: boolean;
}

export interface Executed {
  readonly tensors: readonly Tensor[];
  readonly inferNs: number;
}

export interface Run {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  /** One row for each item of the batch; empty for a model without sequences. */
  readonly rows: readonly StateRow[];
}

export type ToThread = { run: Run } | { forget: readonly number[] } | { close: true };
/** `lost`: the sequence's state was lost with an earlier thread. */
export type FromThread =
  | { ready: ModelInfo; heapBytes: number }
  | { done: Executed }
  | { failed: string; lost?: boolean };
