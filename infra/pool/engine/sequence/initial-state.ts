import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { elementCount } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import type { StateInfo } from '../run/instance-messages.ts';

/**
 * Returns the states of a model with their initial values: zeroes, or a file of its `initial_state` folder.
 */
export async function readStates(config: ModelConfig, directory: string): Promise<Read<StateInfo[]>> {
  const states: StateInfo[] = [];
  for (const state of config.sequence_batching?.state ?? []) {
    const { input_name: input, output_name: output, data_type } = state;
    const datatype = fromConfigName(data_type)!;
    // A free dimension starts at 1, as in Triton.
    const dims = state.initial_state[0]?.dims ?? state.dims.map((dim) => (dim === -1 ? 1 : dim));
    const initial = await readInitial(state, (elementCount(dims) ?? 0) * datatypes[datatype].bytes, directory);
    if (!initial.ok) return initial;
    states.push({ input, output, datatype, dims, initial: initial.value });
  }
  return ok(states);
}

async function readInitial(state: Message<'State'>, size: number, directory: string): Promise<Read<Uint8Array>> {
  const file = state.initial_state[0]?.data_file;
  if (file === undefined) return ok(new Uint8Array(size));
  if (path.basename(file) !== file) return fault(`state '${state.input_name}': '${file}' must be a file`);
  try {
    // A copy: Node reads small files into shared memory.
    const bytes = new Uint8Array(await readFile(path.join(directory, 'initial_state', file)));
    if (bytes.byteLength === size) return ok(bytes);
    return fault(`state '${state.input_name}': '${file}' has ${bytes.byteLength} bytes, the state ${size}`);
  } catch {
    return fault(`state '${state.input_name}': 'initial_state/${file}' cannot be read`);
  }
}
