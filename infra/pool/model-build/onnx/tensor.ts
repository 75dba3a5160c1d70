import { Buffer } from 'node:buffer';
import { bytesOf, fieldsOf, foursOf, numberOf, numbersOf, textOf, WireError } from './wire.ts';
import { bytesField, integerField, joinBytes, textField } from './write-wire.ts';

/** Supported element types of TensorProto.DataType. */
export const elements = { FLOAT: 1, UINT8: 2, INT8: 3, INT32: 6, INT64: 7, FLOAT16: 10 } as const;

/** Head of a tensor, without its elements. */
export interface TensorHead {
  readonly name: string;
  readonly elem: number;
  readonly dims: readonly number[];
  /** Its elements are in another file. */
  readonly elsewhere: boolean;
}

export function readHead(tensor: Uint8Array): TensorHead {
  let [name, elem, elsewhere] = ['', 0, false];
  const dims: number[] = [];
  for (const field of fieldsOf(tensor)) {
    if (field.number === 1) dims.push(...numbersOf(field));
    if (field.number === 2) elem = numberOf(field);
    if (field.number === 8) name = textOf(field);
    if (field.number === 13 || field.number === 14) elsewhere ||= field.number === 13 || numberOf(field) === 1;
  }
  return { name, elem, dims, elsewhere };
}

export const countOf = (dims: readonly number[]): number => dims.reduce((product, dim) => product * dim, 1);

export function widenHalf(half: number): number {
  const sign = half >> 15 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Reads the elements of a FLOAT or FLOAT16 tensor, in either of their two forms. */
export function readFloats(tensor: Uint8Array): Float32Array {
  const { elem, dims, elsewhere, name } = readHead(tensor);
  if (elsewhere || (elem !== elements.FLOAT && elem !== elements.FLOAT16)) {
    throw new WireError(`${name} holds no floating-point numbers`);
  }
  const parts: Float32Array[] = [];
  for (const field of fieldsOf(tensor)) {
    if (field.number === 9) parts.push(readRaw(bytesOf(field), elem));
    if (field.number === 4 && elem === elements.FLOAT) parts.push(floatsIn(foursOf(field)));
    if (field.number === 5 && elem === elements.FLOAT16) parts.push(Float32Array.from(numbersOf(field), widenHalf));
  }
  const found = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  if (found.length !== countOf(dims)) throw new WireError(`${name} has ${found.length} numbers`);
  return found;
}

function readRaw(raw: Uint8Array, elem: number): Float32Array {
  if (elem === elements.FLOAT) return floatsIn(raw);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const values = new Float32Array(raw.length >> 1);
  for (let at = 0; at < values.length; at++) values[at] = widenHalf(view.getUint16(2 * at, true));
  return values;
}

function floatsIn(bytes: Uint8Array): Float32Array {
  // A copy: a tensor may begin at any byte of its file.
  const whole = Uint8Array.from(bytes.subarray(0, bytes.length & ~3));
  return new Float32Array(whole.buffer);
}

export type Numbers = Float32Array | Int8Array | Uint8Array | Int32Array | BigInt64Array;

const elemOf = (values: Numbers): number => {
  if (values instanceof Float32Array) return elements.FLOAT;
  if (values instanceof Int8Array) return elements.INT8;
  if (values instanceof BigInt64Array) return elements.INT64;
  return values instanceof Int32Array ? elements.INT32 : elements.UINT8;
};

/** Writes a TensorProto. No dimensions make a scalar. */
export const writeTensor = (name: string, dims: readonly number[], values: Numbers): Uint8Array =>
  joinBytes([
    ...dims.map((dim) => integerField(1, dim)),
    integerField(2, elemOf(values)),
    textField(8, name),
    bytesField(9, Buffer.from(values.buffer, values.byteOffset, values.byteLength)),
  ]);
