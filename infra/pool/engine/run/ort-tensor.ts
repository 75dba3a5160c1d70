import * as ort from 'onnxruntime-node';
import { decodeBytesElements, encodeBytesElements } from '../../../../shared/kserve/bytes-elements.ts';
import type { Datatype } from '../../../../shared/kserve/datatype.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';

interface View {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): ort.Tensor.DataType;
  readonly BYTES_PER_ELEMENT: number;
}

// onnxruntime-common insists on Float16Array where it exists, and the native binding reads nothing of one;
// both accept plain 16-bit words without it. This runs in the instance's own thread only.
delete (globalThis as { Float16Array?: unknown }).Float16Array;

/** ONNX Runtime names and views by KServe data type. BF16 is absent: the Node binding has no such tensors. */
const table: Partial<Record<Datatype, { type: ort.Tensor.Type; view?: View }>> = {
  BOOL: { type: 'bool', view: Uint8Array },
  UINT8: { type: 'uint8', view: Uint8Array },
  UINT16: { type: 'uint16', view: Uint16Array },
  UINT32: { type: 'uint32', view: Uint32Array },
  UINT64: { type: 'uint64', view: BigUint64Array },
  INT8: { type: 'int8', view: Int8Array },
  INT16: { type: 'int16', view: Int16Array },
  INT32: { type: 'int32', view: Int32Array },
  INT64: { type: 'int64', view: BigInt64Array },
  FP16: { type: 'float16', view: Uint16Array },
  FP32: { type: 'float32', view: Float32Array },
  FP64: { type: 'float64', view: Float64Array },
  BYTES: { type: 'string' },
};

const names = new Map<string, Datatype>(Object.entries(table).map(([name, { type }]) => [type, name as Datatype]));

export const fromOrtType = (type: string): Datatype | undefined => names.get(type);

/** Converts a tensor. Throws on strings that are not UTF-8: ONNX Runtime's Node binding has text only. */
export function toOrt(tensor: Tensor): ort.Tensor {
  const row = table[tensor.datatype];
  if (!row) throw new Error(`${tensor.datatype} tensors are not supported`);
  if (!row.view) {
    const elements = decodeBytesElements(tensor.bytes);
    if (!elements.ok) throw new Error(elements.refusal.reason);
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return new ort.Tensor(
      'string',
      elements.value.map((element) => decoder.decode(element)),
      tensor.shape,
    );
  }
  // `assemble` gives the bytes a buffer of their own, so they start at an aligned address.
  const { buffer, byteOffset, byteLength } = tensor.bytes;
  const length = byteLength / row.view.BYTES_PER_ELEMENT;
  return new ort.Tensor(row.type, new row.view(buffer, byteOffset, length), tensor.shape);
}

export function fromOrt(name: string, tensor: ort.Tensor): Tensor {
  const datatype = fromOrtType(tensor.type);
  if (!datatype) throw new Error(`output '${name}' has the unsupported type ${tensor.type}`);
  const shape = [...tensor.dims];
  if (tensor.type === 'string') {
    const encoder = new TextEncoder();
    const elements = (tensor.data as string[]).map((text) => encoder.encode(text));
    return { name, datatype, shape, bytes: encodeBytesElements(elements) };
  }
  const { buffer, byteOffset, byteLength } = tensor.data as Uint8Array;
  return { name, datatype, shape, bytes: new Uint8Array(buffer, byteOffset, byteLength) };
}
