// Records on a byte stream: a length as a QUIC variable-length integer (RFC 9000 §16), then that many bytes. The length
// is checked before anything is kept, so a peer can make us hold one record and never more.

/** Writes a length in its shortest form, at most four bytes, and returns the position behind it. */
export function writeLength(into: Uint8Array, at: number, length: number): number {
  const size = sizeOf(length);
  if (length >= 2 ** 30) throw new RangeError('length over 30 bits');
  let rest = length;
  for (let place = at + size - 1; place >= at; place -= 1) {
    into[place] = rest & 0xff;
    rest >>>= 8;
  }
  into[at] = (into[at] ?? 0) | ((size >> 1) << 6);
  return at + size;
}

export interface FrameReader {
  /** Adds bytes. They are not copied while a record lies in them whole. */
  push(chunk: Uint8Array): void;
  /** The next record; `more` when it is not complete; `malformed`, for good, when its length is not acceptable. */
  next(): Uint8Array | 'more' | 'malformed';
  /** No byte is waiting. */
  empty(): boolean;
}

/** `smallest` and `largest` bound the length of a record, both inclusive. */
export function createFrameReader(smallest: number, largest: number): FrameReader {
  let rest = new Uint8Array() as Uint8Array;
  let prefix: number[] = [];
  let length: number | undefined;
  let partial: Uint8Array | undefined;
  let filled = 0;

  const take = (count: number) => {
    const taken = rest.subarray(0, count);
    rest = rest.subarray(taken.length);
    return taken;
  };

  function readLength(): 'more' | 'malformed' | number {
    const first = prefix.length > 0 ? prefix[0] : rest[0];
    if (first === undefined) return 'more';
    const size = 1 << (first >> 6);
    if (size > 4) return 'malformed';
    const missing = size - prefix.length;
    if (rest.length < missing) {
      prefix.push(...rest);
      rest = new Uint8Array();
      return 'more';
    }
    // A length that arrives whole, as nearly all do, is read where it is.
    const value =
      prefix.length > 0 ? lengthAt([...prefix, ...rest.subarray(0, missing)], 0, size) : lengthAt(rest, 0, size);
    prefix = [];
    rest = rest.subarray(missing);
    return value === undefined || value < smallest || value > largest ? 'malformed' : value;
  }

  return {
    push(chunk) {
      if (rest.length === 0) {
        rest = chunk;
        return;
      }
      const joined = new Uint8Array(rest.length + chunk.length);
      joined.set(rest);
      joined.set(chunk, rest.length);
      rest = joined;
    },
    next() {
      if (length === undefined) {
        const read = readLength();
        if (typeof read === 'string') return read;
        length = read;
      }
      if (!partial && rest.length >= length) {
        const whole = take(length);
        length = undefined;
        return whole;
      }
      partial ??= new Uint8Array(length);
      const piece = take(length - filled);
      partial.set(piece, filled);
      filled += piece.length;
      if (filled < length) return 'more';
      const whole = partial;
      length = undefined;
      partial = undefined;
      filled = 0;
      return whole;
    },
    empty: () => rest.length === 0 && prefix.length === 0 && length === undefined,
  };
}

/** A length of `size` bytes at `at`; `undefined` when a shorter form would do. */
function lengthAt(bytes: ArrayLike<number>, at: number, size: number): number | undefined {
  let value = (bytes[at] ?? 0) & 0x3f;
  for (let next = at + 1; next < at + size; next += 1) value = value * 256 + (bytes[next] ?? 0);
  return sizeOf(value) === size ? value : undefined;
}

/** Bytes of a length in its shortest form. */
export const sizeOf = (value: number): number => (value < 2 ** 6 ? 1 : value < 2 ** 14 ? 2 : 4);

/**
 * Cuts bytes that are there whole: lengths and what they announce, from first to last. `undefined` when that is not
 * what they are, or a length is out of bounds, both inclusive.
 */
export function cutAll(bytes: Uint8Array, smallest: number, largest: number): Uint8Array[] | undefined {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 << ((bytes[at] ?? 0) >> 6);
    if (size > 4 || at + size > bytes.length) return undefined;
    const length = lengthAt(bytes, at, size);
    const from = at + size;
    if (length === undefined || length < smallest || length > largest || from + length > bytes.length) return undefined;
    parts.push(bytes.subarray(from, from + length));
    at = from + length;
  }
  return parts;
}
