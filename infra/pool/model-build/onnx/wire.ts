/** One field of a protobuf message, as a view of it. */
export interface Field {
  readonly number: number;
  readonly wire: number;
  /** Value of a varint; signed 64-bit integers are not yet converted. */
  readonly value: bigint;
  /** Bytes of a length-delimited or fixed field, not copied. */
  readonly bytes: Uint8Array;
  /** The whole encoded field with its tag, not copied. */
  readonly raw: Uint8Array;
}

/** Error for bytes that are no protobuf message. */
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

/**
 * Yields the fields of a message in order. Throws `WireError` for other bytes, and for the obsolete groups.
 */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  for (let at = 0; at < bytes.length; ) {
    const [tag, behind] = varint(bytes, at);
    const [number, wire] = [Number(tag >> 3n), Number(tag & 7n)];
    // Some readers truncate the tag to 32 bits, and find another field.
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

/** Wire types: varint, length-delimited, four bytes. */
const [VARINT, BYTES, FOUR] = [0, 2, 5];

/** Throws for a known field of another wire type, which some readers skip and others read. */
function expect({ number, wire }: Field, ...expected: readonly number[]): void {
  if (!expected.includes(wire)) throw new WireError(`the field ${number} is written as something else`);
}

/** Returns the bytes of a text, a message, or a bytes field. */
export function bytesOf(field: Field): Uint8Array {
  expect(field, BYTES);
  return field.bytes;
}

/** Yields the fields of a nested message. */
export const partsOf = (field: Field): Generator<Field> => fieldsOf(bytesOf(field));

/** Returns a 32-bit float. */
export function floatOf(field: Field): number {
  expect(field, FOUR);
  return new DataView(field.bytes.buffer, field.bytes.byteOffset, 4).getFloat32(0, true);
}

/** Returns one or many numbers of four bytes. */
export function foursOf(field: Field): Uint8Array {
  expect(field, BYTES, FOUR);
  return field.bytes;
}

// A byte order mark is part of the text, as in other readers.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function textOf(field: Field): string {
  const bytes = bytesOf(field);
  try {
    return utf8.decode(bytes);
  } catch {
    throw new WireError('a text is not UTF-8');
  }
}

/** Returns a number; signed 64-bit integers are two's complement in ten bytes. */
export function numberOf(field: Field): number {
  expect(field, VARINT);
  return Number(BigInt.asIntN(64, field.value));
}

/** Returns a repeated integer, packed or not. */
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
