import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import type { ModelMetadata, ServerMetadata } from '../../../../shared/kserve/metadata.ts';
import { LOAD_RETRY } from '../../../../shared/kserve/repository.ts';
import type { Message } from '../../models/config/schema.ts';
import type { Served } from '../model/served.ts';

/** Describes the server; `retriesLoads`: it loads a failed model again by itself. */
export const serverMetadata = (retriesLoads: boolean): ServerMetadata => ({
  name: 'auricle-engine',
  version: '0.1.0',
  extensions: [
    'model_repository',
    'model_repository(unload_dependents)',
    ...(retriesLoads ? [LOAD_RETRY] : []),
    'schedule_policy',
    'sequence',
    'model_configuration',
    'binary_tensor_data',
    'parameters',
    'statistics',
  ],
});

type Io = Message<'Input'> | Message<'Output'>;

/**
 * Builds the metadata of a model. With batching the first dimension of every tensor is the batch, and it is
 * free.
 */
export function modelMetadata(served: Served, all: readonly Served[]): ModelMetadata {
  const { name, config } = served;
  const tensor = ({ name: called, data_type, dims }: Io) => ({
    name: called,
    datatype: fromConfigName(data_type) ?? 'BYTES',
    shape: config.max_batch_size > 0 ? [-1, ...dims] : [...dims],
  });
  return {
    name,
    versions: all
      .filter((other) => other.name === name)
      .map(({ version }) => String(version))
      .sort(),
    platform: config.platform,
    inputs: config.input.map(tensor),
    outputs: config.output.map(tensor),
  };
}
