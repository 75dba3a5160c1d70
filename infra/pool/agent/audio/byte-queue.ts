/** Bytes are held in blocks of this size, however small the chunks are in which they come. */
const BLOCK_BYTES = 64 * 1024;

/** A FIFO of bytes that knows the offset of its front in the file. */
export function createByteQueue(start = 0) {
  let position = start;
  let length = 0;
  const blocks: Uint8Array[] = [];
  /** Bytes of the first block that were taken, and of the last one that are filled. */
  let taken = 0;
  let filled = BLOCK_BYTES;

  function drop(count: number) {
    position += count;
    length -= count;
    taken += count;
    while (taken >= BLOCK_BYTES) {
      blocks.shift();
      taken -= BLOCK_BYTES;
    }
  }

  const queue = {
    position: () => position,
    length: () => length,
    append(bytes: Uint8Array) {
      for (let at = 0; at < bytes.length; ) {
        if (filled === BLOCK_BYTES) {
          blocks.push(new Uint8Array(BLOCK_BYTES));
          filled = 0;
        }
        const part = bytes.subarray(at, at + BLOCK_BYTES - filled);
        blocks.at(-1)?.set(part, filled);
        filled += part.length;
        at += part.length;
        length += part.length;
      }
    },
    /** Returns the first `count` bytes without taking them; undefined while fewer are there. */
    peek(count: number): Uint8Array | undefined {
      if (length < count) return undefined;
      const first = blocks[0];
      if (first && taken + count <= BLOCK_BYTES) return first.subarray(taken, taken + count);
      const out = new Uint8Array(count);
      for (let i = 0, at = 0; at < count; i++) {
        const part = blocks[i]?.subarray(i === 0 ? taken : 0) ?? out;
        out.set(part.subarray(0, count - at), at);
        at += part.length;
      }
      return out;
    },
    take(count: number): Uint8Array | undefined {
      const bytes = queue.peek(count);
      if (bytes) drop(count);
      return bytes;
    },
    /** Drops bytes up to offset `wanted`, as far as they are there. */
    skipTo(wanted: number) {
      if (wanted > position) drop(Math.min(length, wanted - position));
    },
  };
  return queue;
}

export type ByteQueue = ReturnType<typeof createByteQueue>;
