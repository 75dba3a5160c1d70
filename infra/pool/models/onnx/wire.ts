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
    if (number === 0) throw new WireError(`no field at ${at}`);
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

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function textOf(field: Field): string {
  try {
    return utf8.decode(field.bytes);
  } catch {
    throw new WireError('a text is not UTF-8');
  }
}

/** As a number; signed 64-bit integers are two's complement in ten bytes. */
export const numberOf = ({ value }: Field): number => Number(BigInt.asIntN(64, value));

/** A repeated integer, packed or one by one. */
export function numbersOf(field: Field): number[] {
  if (field.wire === 0) return [numberOf(field)];
  const values: number[] = [];
  for (let at = 0; at < field.bytes.length; ) {
    const [value, next] = varint(field.bytes, at);
    values.push(Number(BigInt.asIntN(64, value)));
    at = next;
  }
  return values;
}
