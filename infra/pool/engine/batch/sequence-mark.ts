import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import type { RequestParameters } from '../../../../shared/kserve/parameters.ts';
import { ok } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { controlOf } from '../../models/config/sequence-rules.ts';

/** Sequence parameters of a request. */
export interface Mark {
  /** Never 0 or '', which mean no sequence. A number and its text are two sequences, as in Triton. */
  readonly id: number | string;
  readonly start: boolean;
  readonly end: boolean;
}

/** Returns the mark of a request, if it has an id; start and end mean nothing without one. */
export function readMark({ sequence_id: id, sequence_start, sequence_end }: RequestParameters): Mark | undefined {
  if (id === undefined || id === 0 || id === '') return undefined;
  return { id, start: sequence_start ?? false, end: sequence_end ?? false };
}

export const keyOf = ({ id }: Mark): string => `${typeof id}:${id}`;

/** Error text that Triton's clients match on. */
export const startWanted = ({ id }: Mark, model: string): string =>
  `inference request for sequence ${id} to model '${model}' must specify the START flag on the first request of the sequence`;

const largest: Record<string, number> = { TYPE_INT32: 2 ** 31 - 1, TYPE_UINT32: 2 ** 32 - 1 };

/** Checks the request itself for a model with sequences. */
export function checkMark(config: ModelConfig, mark: Mark | undefined, size: number): Read<Mark> {
  const { name: model, sequence_batching } = config;
  if (size > 1)
    return fault(
      `inference request to model '${model}' must specify batch-size 1 due to requirements of sequence batcher`,
    );
  if (!mark) return fault(`inference request to model '${model}' must specify a non-zero or non-empty correlation ID`);
  const control = controlOf(sequence_batching, 'CONTROL_SEQUENCE_CORRID');
  if (!control) return ok(mark);
  const called = `sequence batching control '${control.name}'`;
  const isText = typeof mark.id === 'string';
  if (isText !== (control.data_type === 'TYPE_STRING')) {
    const [given, wanted] = [
      isText ? 'BYTES' : 'UINT64',
      control.data_type.replace('TYPE_STRING', 'BYTES').replace('TYPE_', ''),
    ];
    return fault(`${called} data-type is '${given}', but model '${model}' expects '${wanted}'`);
  }
  // Triton truncates the id, so that two sequences may look like one to the network.
  if (Number(mark.id) > (largest[control.data_type] ?? Number.MAX_SAFE_INTEGER))
    return fault(`${called}: the sequence id does not fit ${control.data_type}`);
  return ok(mark);
}
