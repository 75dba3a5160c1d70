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
}

export interface Executed {
  readonly tensors: readonly Tensor[];
  readonly inferNs: number;
}

export type ToThread = { run: { inputs: readonly Tensor[]; outputs: readonly string[] } } | { close: true };
export type FromThread = { ready: ModelInfo } | { done: Executed } | { failed: string };
