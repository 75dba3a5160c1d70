import { ok } from '../result.ts';
import { boundElements, countBytesElements, decodeBytesElements } from './bytes-elements.ts';
import { type Datatype, datatypes } from './datatype.ts';
import { fault, type Read } from './fault.ts';

/** One tensor with its contents as they travel: little-endian, row-major, BYTES elements length-prefixed. */
export interface Tensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Elements of a shape, or undefined when a dimension is negative, fractional or the product leaves the safe integers. */
export function elementCount(shape: readonly number[]): number | undefined {
  let count = 1;
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) return undefined;
    count *= dim;
    if (!Number.isSafeInteger(count)) return undefined;
  }
  return count;
}

/** The tensor, if it has as many bytes as datatype and shape say; the elements of BYTES are only bounded. */
export function checkSize(tensor: Tensor): Read<Tensor> {
  const { name, datatype, shape, bytes } = tensor;
  const count = elementCount(shape);
  if (count === undefined) return fault(`tensor '${name}' has an invalid shape [${shape}]`);
  const width = datatypes[datatype].bytes;
  if (width === 0) {
    const bounded = boundElements(count);
    return bounded.ok ? ok(tensor) : fault(`tensor '${name}': ${bounded.refusal.reason}`);
  }
  if (bytes.byteLength === count * width) return ok(tensor);
  return fault(
    `tensor '${name}' of shape [${shape}] and type ${datatype} needs ${count * width} bytes, got ${bytes.byteLength}`,
  );
}

/** The tensor, once its bytes are known to be exactly what datatype and shape say. */
export function checkTensor(tensor: Tensor): Read<Tensor> {
  const sized = checkSize(tensor);
  if (!sized.ok) return sized;
  const { name, datatype, shape, bytes } = tensor;
  if (datatype === 'BOOL' && !areBooleans(bytes)) {
    return fault(`tensor '${name}' holds a BOOL that is neither 0 nor 1`);
  }
  if (datatype !== 'BYTES') return sized;
  const found = countBytesElements(bytes);
  if (!found.ok) return fault(`tensor '${name}': ${found.refusal.reason}`);
  const count = elementCount(shape);
  if (found.value === count) return sized;
  return fault(`tensor '${name}' of shape [${shape}] needs ${count} elements, got ${found.value}`);
}

/** Any other byte is undefined behaviour in whatever computes with it. A loop: a callback for each takes ten times as long. */
function areBooleans(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] as number) > 1) return false;
  return true;
}

type Plain = Float32Array | Float64Array | Int32Array | Uint8Array | BigInt64Array | BigUint64Array;

/** A tensor over the memory of a typed array: nothing is copied, so the array must not change afterwards. */
function over(name: string, datatype: Datatype, shape: readonly number[], data: Plain): Tensor {
  return { name, datatype, shape, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

export const fp32Tensor = (name: string, data: Float32Array, shape: readonly number[] = [data.length]): Tensor =>
  over(name, 'FP32', shape, data);

export const int32Tensor = (name: string, data: Int32Array, shape: readonly number[] = [data.length]): Tensor =>
  over(name, 'INT32', shape, data);

/** Bytes at an address the typed-array constructors accept; copied only when they are not there already. */
function aligned(bytes: Uint8Array, width: number): { buffer: ArrayBufferLike; at: number } {
  if (bytes.byteOffset % width === 0) return { buffer: bytes.buffer, at: bytes.byteOffset };
  // Not `slice`: that of a Buffer is a window and not a copy.
  return { buffer: new Uint8Array(bytes).buffer, at: 0 };
}

function expect(tensor: Tensor, datatype: Datatype): Read<Tensor> {
  if (tensor.datatype === datatype) return checkTensor(tensor);
  return fault(`tensor '${tensor.name}' is ${tensor.datatype}, ${datatype} was expected`);
}

export function readFp32(tensor: Tensor): Read<Float32Array> {
  const checked = expect(tensor, 'FP32');
  if (!checked.ok) return checked;
  const { buffer, at } = aligned(tensor.bytes, 4);
  return ok(new Float32Array(buffer, at, tensor.bytes.byteLength / 4));
}

export function readInt32(tensor: Tensor): Read<Int32Array> {
  const checked = expect(tensor, 'INT32');
  if (!checked.ok) return checked;
  const { buffer, at } = aligned(tensor.bytes, 4);
  return ok(new Int32Array(buffer, at, tensor.bytes.byteLength / 4));
}

export function readBytes(tensor: Tensor): Read<Uint8Array[]> {
  const checked = expect(tensor, 'BYTES');
  return checked.ok ? decodeBytesElements(tensor.bytes) : checked;
}
