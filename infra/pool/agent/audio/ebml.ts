// Elements of EBML (RFC 8794), as Matroska and WebM use them (RFC 9559).

/** A number of variable length and the bytes that it takes. */
export interface Vint {
  readonly value: number;
  readonly bytes: number;
  /** All bits are set: an element of unknown size (RFC 8794 §6.2). */
  readonly isUnknown: boolean;
}

/**
 * Reads a size, or a number in a block, at `at`. Returns undefined while bytes are missing, and `broken` for one that is
 * longer than 8 bytes or beyond exact numbers.
 */
export function readVint(bytes: Uint8Array, at = 0): Vint | 'broken' | undefined {
  const first = bytes[at];
  if (first === undefined) return undefined;
  const length = Math.clz32(first) - 23;
  if (length > 8) return 'broken';
  if (at + length > bytes.length) return undefined;
  let value = first & (0xff >> length);
  let isUnknown = value === 0xff >> length;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i] ?? 0;
    isUnknown &&= byte === 0xff;
    value = value * 256 + byte;
  }
  return Number.isSafeInteger(value) || isUnknown ? { value, bytes: length, isUnknown } : 'broken';
}

/** Reads an element's id with its marker (RFC 8794 §5). */
export function readId(
  bytes: Uint8Array,
  at = 0,
): { readonly id: number; readonly bytes: number } | 'broken' | undefined {
  const first = bytes[at];
  if (first === undefined) return undefined;
  const length = Math.clz32(first) - 23;
  if (length > 4) return 'broken';
  if (at + length > bytes.length) return undefined;
  let id = 0;
  for (let i = 0; i < length; i++) id = id * 256 + (bytes[at + i] ?? 0);
  return { id, bytes: length };
}

export interface Element {
  readonly id: number;
  readonly body: Uint8Array;
}

/** Elements inside a body that one element may hold: a track has two dozen. */
const ELEMENTS_MAX = 1_024;

/** Returns the first elements inside `body`; stops at one that does not fit. */
export function elementsIn(body: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < body.length && elements.length < ELEMENTS_MAX; ) {
    const id = readId(body, at);
    if (!id || id === 'broken') break;
    const size = readVint(body, at + id.bytes);
    if (!size || size === 'broken' || size.isUnknown) break;
    const start = at + id.bytes + size.bytes;
    if (start + size.value > body.length) break;
    elements.push({ id: id.id, body: body.subarray(start, start + size.value) });
    at = start + size.value;
  }
  return elements;
}

/** An unsigned integer (RFC 8794 §7.2). */
export const readUint = (body: Uint8Array): number => body.reduce((value, byte) => value * 256 + byte, 0);
