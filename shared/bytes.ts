export const KiB = 1_024;
export const MiB = 1_024 * KiB;

const encoder = new TextEncoder();

export const ascii = (text: string): Uint8Array => encoder.encode(text);

export const concat = (...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => joined(parts);

/** However many there are. */
export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** `value` as `length` bytes, most significant first (I2OSP of RFC 8017 §4.1). */
export function bigEndian(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let rest = value;
  for (let at = length - 1; at >= 0; at--) {
    bytes[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}
