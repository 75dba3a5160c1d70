import { encodeBytesElements } from '../../../../shared/kserve/bytes-elements.ts';
import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { type Control, controlOf } from '../../models/config/sequence-rules.ts';
import type { Mark } from './sequence-mark.ts';

const put: Partial<Record<Tensor['datatype'], (view: DataView, at: number, value: number) => void>> = {
  BOOL: (view, at, value) => view.setUint8(at, value),
  INT32: (view, at, value) => view.setInt32(at, value, true),
  UINT32: (view, at, value) => view.setUint32(at, value, true),
  INT64: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  UINT64: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  FP32: (view, at, value) => view.setFloat32(at, value, true),
};

function tensorOf({ name, data_type }: Control, values: readonly (number | string)[], batched: boolean): Tensor {
  const datatype = fromConfigName(data_type)!;
  const shape = batched ? [values.length, 1] : [1];
  if (datatype === 'BYTES') {
    const encoder = new TextEncoder();
    return { name, datatype, shape, bytes: encodeBytesElements(values.map((value) => encoder.encode(String(value)))) };
  }
  const width = datatypes[datatype].bytes;
  const bytes = new Uint8Array(values.length * width);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of values.entries()) put[datatype]?.(view, index * width, Number(value));
  return { name, datatype, shape, bytes };
}

/** Control tensors of the batch's requests, as the configuration names them. */
export function controlTensors({ sequence_batching, max_batch_size }: ModelConfig, marks: readonly Mark[]): Tensor[] {
  const tensors: Tensor[] = [];
  const flag = (kind: Parameters<typeof controlOf>[1], isUp: (mark: Mark) => boolean) => {
    const control = controlOf(sequence_batching, kind);
    if (!control) return;
    const [down, up] = control.values ?? [0, 1];
    tensors.push(
      tensorOf(
        control,
        marks.map((mark) => (isUp(mark) ? up : down)),
        max_batch_size > 0,
      ),
    );
  };
  flag('CONTROL_SEQUENCE_START', ({ start }) => start);
  flag('CONTROL_SEQUENCE_END', ({ end }) => end);
  // No row of a batch is empty: the network has no memory between runs, so rows need no fixed positions.
  flag('CONTROL_SEQUENCE_READY', () => true);
  const corrid = controlOf(sequence_batching, 'CONTROL_SEQUENCE_CORRID');
  if (corrid)
    tensors.push(
      tensorOf(
        corrid,
        marks.map(({ id }) => id),
        max_batch_size > 0,
      ),
    );
  return tensors;
}
