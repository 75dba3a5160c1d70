import { ok } from '../result.ts';
import { boundElements, decodeBytesElements, encodeBytesElements } from './bytes-elements.ts';
import { type Datatype, datatypes } from './datatype.ts';
import { fault, type Read } from './fault.ts';
import type { Tensor } from './tensor.ts';

interface Scalar {
  put(view: DataView, at: number, value: number | boolean): void;
  get(view: DataView, at: number): number | bigint | boolean;
  accepts(value: unknown): value is number | boolean;
}

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const within =
  (low: number, high: number) =>
  (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high;

/**
 * JSON forms of elements. FP16 and BF16 are absent: the protocol carries them as binary only. 64-bit integers
 * beyond 2^53 are refused, because JSON parsers on the way would round them.
 */
const scalars: Partial<Record<Datatype, Scalar>> = {
  BOOL: { put: (v, at, x) => v.setUint8(at, x ? 1 : 0), get: (v, at) => v.getUint8(at) !== 0, accepts: isBoolean },
  UINT8: { put: (v, at, x) => v.setUint8(at, +x), get: (v, at) => v.getUint8(at), accepts: within(0, 0xff) },
  UINT16: {
    put: (v, at, x) => v.setUint16(at, +x, true),
    get: (v, at) => v.getUint16(at, true),
    accepts: within(0, 0xffff),
  },
  UINT32: {
    put: (v, at, x) => v.setUint32(at, +x, true),
    get: (v, at) => v.getUint32(at, true),
    accepts: within(0, 0xffff_ffff),
  },
  UINT64: {
    put: (v, at, x) => v.setBigUint64(at, BigInt(x), true),
    get: (v, at) => v.getBigUint64(at, true),
    accepts: within(0, Number.MAX_SAFE_INTEGER),
  },
  INT8: { put: (v, at, x) => v.setInt8(at, +x), get: (v, at) => v.getInt8(at), accepts: within(-0x80, 0x7f) },
  INT16: {
    put: (v, at, x) => v.setInt16(at, +x, true),
    get: (v, at) => v.getInt16(at, true),
    accepts: within(-0x8000, 0x7fff),
  },
  INT32: {
    put: (v, at, x) => v.setInt32(at, +x, true),
    get: (v, at) => v.getInt32(at, true),
    accepts: within(-0x8000_0000, 0x7fff_ffff),
  },
  INT64: {
    put: (v, at, x) => v.setBigInt64(at, BigInt(x), true),
    get: (v, at) => v.getBigInt64(at, true),
    accepts: within(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  },
  FP32: { put: (v, at, x) => v.setFloat32(at, +x, true), get: (v, at) => v.getFloat32(at, true), accepts: isNumber },
  FP64: { put: (v, at, x) => v.setFloat64(at, +x, true), get: (v, at) => v.getFloat64(at, true), accepts: isNumber },
};

/** Depth-first, without recursion per element; a nesting deeper than any tensor is refused before the stack is. */
function flatten(data: readonly unknown[], out: unknown[], depth: number): boolean {
  if (depth > 32) return false;
  for (const item of data) {
    if (!Array.isArray(item)) out.push(item);
    else if (!flatten(item, out, depth + 1)) return false;
  }
  return true;
}

/** JSON `data` (flat or nested) → wire bytes. The count is checked against the shape by the caller. */
export function bytesFromJson(name: string, datatype: Datatype, data: readonly unknown[]): Read<Uint8Array> {
  const flat: unknown[] = [];
  if (!flatten(data, flat, 0)) return fault(`tensor '${name}': data is nested too deeply`);
  if (datatype === 'BYTES') return textBytes(name, flat);
  const scalar = scalars[datatype];
  if (!scalar) return fault(`tensor '${name}': ${datatype} can only be sent as binary data`);
  const width = datatypes[datatype].bytes;
  const out = new Uint8Array(flat.length * width);
  const view = new DataView(out.buffer);
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    if (!scalar.accepts(value)) return fault(`tensor '${name}': element ${i} is not a ${datatype} value`);
    scalar.put(view, i * width, value);
  }
  return ok(out);
}

function textBytes(name: string, flat: readonly unknown[]): Read<Uint8Array> {
  const bounded = boundElements(flat.length);
  if (!bounded.ok) return fault(`tensor '${name}': ${bounded.refusal.reason}`);
  const encoder = new TextEncoder();
  const elements: Uint8Array[] = [];
  for (const value of flat) {
    if (typeof value !== 'string') return fault(`tensor '${name}': element ${elements.length} is not a string`);
    elements.push(encoder.encode(value));
  }
  return ok(encodeBytesElements(elements));
}

/** Wire bytes → the text of a JSON array. Text, because JSON.stringify would round 64-bit integers. */
export function jsonFromBytes(tensor: Tensor): Read<string> {
  const { name, datatype, bytes } = tensor;
  if (datatype === 'BYTES') return jsonText(tensor);
  const scalar = scalars[datatype];
  if (!scalar) return fault(`tensor '${name}': ${datatype} can only be sent as binary data`);
  const width = datatypes[datatype].bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts = new Array<string>(bytes.byteLength / width);
  for (let i = 0; i < parts.length; i++) {
    const value = scalar.get(view, i * width);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return fault(
        `tensor '${name}' holds a ${Number.isNaN(value) ? 'NaN' : 'infinite number'}, which JSON cannot carry; ask for binary data`,
      );
    }
    parts[i] = Object.is(value, -0) ? '-0.0' : String(value);
  }
  return ok(`[${parts.join(',')}]`);
}

function jsonText({ name, bytes }: Tensor): Read<string> {
  const elements = decodeBytesElements(bytes);
  if (!elements.ok) return fault(`tensor '${name}': ${elements.refusal.reason}`);
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    return ok(JSON.stringify(elements.value.map((element) => decoder.decode(element))));
  } catch {
    return fault(`tensor '${name}' holds bytes that are not UTF-8 text; ask for binary data`);
  }
}
