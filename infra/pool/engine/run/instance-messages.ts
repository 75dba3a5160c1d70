import type { Datatype } from '../../../../shared/kserve/datatype.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';

/** What a model file says about one of its tensors; -1 is a free dimension. */
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
  /** Whether the first dimension of every tensor is the batch. */
  readonly batched: boolean;
  /** The tensors that the thread keeps between the requests of a sequence. */
  readonly states: readonly StateInfo[];
}

/** An implicit state: what the network writes to `output` it reads from `input` with the sequence's next request. */
export interface StateInfo {
  readonly input: string;
  readonly output: string;
  readonly datatype: Datatype;
  /** Without the batch, as a sequence begins. */
  readonly dims: readonly number[];
  /** What a sequence begins with. */
  readonly initial: Uint8Array;
}

/** Whose state a row of the batch reads and writes. */
export interface StateRow {
  /** Place of the sequence on this instance. */
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
  /** One for each item of the batch; empty for a model without sequences. */
  readonly rows: readonly StateRow[];
}

export type ToThread = { run: Run } | { forget: readonly number[] } | { close: true };
/** `lost`: the sequence's state went with an earlier thread. */
export type FromThread = { ready: ModelInfo } | { done: Executed } | { failed: string; lost?: boolean };
