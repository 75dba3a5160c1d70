/** One field of a protobuf message, where it lies. */
export interface Field {
  readonly number: number;
  readonly wire: number;
  /** Of a varint; signed 64-bit integers come as they are written. */
  readonly value: bigint;
  /** Of a length-delimited or fixed field: its bytes, not copied. */
  readonly bytes: Uint8Array;
  /** The whole field as it is written, its number included, not copied. */
  readonly raw: Uint8Array;
}

/** Bytes that are no protobuf message. */
export class WireError extends Error {}

const nothing = new Uint8Array(0);

function varint(bytes: Uint8Array, at: number): [value: bigint, next: number] {
  let value = 0n;
  for (let n = 0; n < 10; n++) {
    const byte = bytes[at + n];
    if (byte === undefined) break;
    value |= BigInt(byte & 127) << BigInt(7 * n);
    if (byte < 128) return [value, at + n + 1];
  }
  throw new WireError(`no number at ${at}`);
}

/** The fields of a message in order. Throws `WireError` for what is no message, groups included: nobody writes them. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  for (let at = 0; at < bytes.length; ) {
    const [tag, behind] = varint(bytes, at);
    const [number, wire] = [Number(tag >> 3n), Number(tag & 7n)];
    // Some readers keep its lower half, and find another field.
    if (number === 0 || tag > 0xffff_ffffn) throw new WireError(`no field at ${at}`);
    if (wire === 0) {
      const [value, next] = varint(bytes, behind);
      yield { number, wire, value, bytes: nothing, raw: bytes.subarray(at, next) };
      at = next;
      continue;
    }
    const [length, from] = wire === 2 ? varint(bytes, behind) : [wire === 1 ? 8n : 4n, behind];
    if (wire !== 1 && wire !== 2 && wire !== 5) throw new WireError(`no field at ${at}`);
    const end = from + Number(length);
    if (end > bytes.length) throw new WireError(`a field at ${at} goes over the end`);
    yield { number, wire, value: 0n, bytes: bytes.subarray(from, end), raw: bytes.subarray(at, end) };
    at = end;
  }
}

/** How a field is written that is a number; everything with a length; four bytes. */
const [VARINT, BYTES, FOUR] = [0, 2, 5];

/** A field that is known by its number and is written as something else is skipped by some readers and read by others. */
function expect({ number, wire }: Field, ...expected: readonly number[]): void {
  if (!expected.includes(wire)) throw new WireError(`the field ${number} is written as something else`);
}

/** Of a text, a message, or bytes. */
export function bytesOf(field: Field): Uint8Array {
  expect(field, BYTES);
  return field.bytes;
}

/** The fields of a message that is a field itself. */
export const partsOf = (field: Field): Generator<Field> => fieldsOf(bytesOf(field));

/** A number of four bytes. */
export function floatOf(field: Field): number {
  expect(field, FOUR);
  return new DataView(field.bytes.buffer, field.bytes.byteOffset, 4).getFloat32(0, true);
}

/** One number of four bytes, or many of them. */
export function foursOf(field: Field): Uint8Array {
  expect(field, BYTES, FOUR);
  return field.bytes;
}

// A byte order mark is part of a text, as everybody else sees it.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function textOf(field: Field): string {
  const bytes = bytesOf(field);
  try {
    return utf8.decode(bytes);
  } catch {
    throw new WireError('a text is not UTF-8');
  }
}

/** As a number; signed 64-bit integers are two's complement in ten bytes. */
export function numberOf(field: Field): number {
  expect(field, VARINT);
  return Number(BigInt.asIntN(64, field.value));
}

/** A repeated integer, packed or one by one. */
export function numbersOf(field: Field): number[] {
  if (field.wire === VARINT) return [numberOf(field)];
  const bytes = bytesOf(field);
  const values: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [value, next] = varint(bytes, at);
    values.push(Number(BigInt.asIntN(64, value)));
    at = next;
  }
  return values;
}
