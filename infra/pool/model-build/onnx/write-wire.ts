import { Buffer } from 'node:buffer';

/**
 * Protobuf encoder, the inverse of `fieldsOf`. Integers take their shortest form, so that equal values give
 * equal bytes.
 */
function varint(given: number | bigint): Uint8Array {
  let rest = BigInt.asUintN(64, BigInt(given));
  const out: number[] = [];
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
  return Uint8Array.from(out);
}

export const joinBytes = (parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts);

export const integerField = (number: number, value: number | bigint): Uint8Array =>
  joinBytes([varint(number << 3), varint(value)]);

export const floatField = (number: number, value: number): Uint8Array =>
  joinBytes([varint((number << 3) | 5), new Uint8Array(Float32Array.of(value).buffer)]);

export const bytesField = (number: number, bytes: Uint8Array): Uint8Array =>
  joinBytes([varint((number << 3) | 2), varint(bytes.length), bytes]);

export const textField = (number: number, text: string): Uint8Array => bytesField(number, Buffer.from(text));

export const messageField = (number: number, fields: readonly Uint8Array[]): Uint8Array =>
  bytesField(number, joinBytes(fields));
