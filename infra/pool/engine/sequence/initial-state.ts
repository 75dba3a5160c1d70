import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { elementCount } from '../../../../shared/kserve/tensor.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { StateInfo } from '../run/instance-messages.ts';

/** Returns the states of a model with their initial values, zeroes. A free dimension starts at 1, as in Triton. */
export const statesOf = (config: ModelConfig): StateInfo[] =>
  (config.sequence_batching?.state ?? []).map((state) => {
    const { input_name: input, output_name: output, data_type } = state;
    const datatype = fromConfigName(data_type)!;
    const dims = state.initial_state[0]?.dims ?? state.dims.map((dim) => (dim === -1 ? 1 : dim));
    const initial = new Uint8Array((elementCount(dims) ?? 0) * datatypes[datatype].bytes);
    return { input, output, datatype, dims, initial };
  });
