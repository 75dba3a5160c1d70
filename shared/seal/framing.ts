// Records on a byte stream: a length as a QUIC variable-length integer (RFC 9000 §16), then that many bytes. The length
// is checked before anything is kept, so a peer can make us hold one record and never more.

/** The shortest form; lengths here fit four bytes. */
export function encodeLength(length: number): Uint8Array {
  if (length < 2 ** 6) return Uint8Array.of(length);
  if (length < 2 ** 14) return Uint8Array.of(0x40 | (length >> 8), length & 0xff);
  if (length < 2 ** 30)
    return Uint8Array.of(0x80 | (length >> 24), (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff);
  throw new RangeError('length over 30 bits');
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
    for (;;) {
      const size = prefix[0] === undefined ? 1 : 1 << (prefix[0] >> 6);
      if (size > 4) return 'malformed';
      if (prefix.length === size && prefix[0] !== undefined) break;
      const [byte] = take(1);
      if (byte === undefined) return 'more';
      prefix.push(byte);
    }
    const [first = 0, ...others] = prefix;
    const value = others.reduce((sum, byte) => sum * 256 + byte, first & 0x3f);
    if (encodeLength(value).length !== prefix.length) return 'malformed';
    return value < smallest || value > largest ? 'malformed' : value;
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
        prefix = [];
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
