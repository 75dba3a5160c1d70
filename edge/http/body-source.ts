import { KiB, MiB } from '../../shared/bytes.ts';
import { SEAL_SEGMENT_BYTES } from '../../shared/seal/limits.ts';
import { late, type Runtime } from '../clock.ts';

/** Smallest read of a body: byte by byte it would cost a hundred times its size to buffer. */
export const BODY_READ_BYTES = KiB;
/**
 * Remainder of a refused body that is read and discarded: a client that still sends could not read the
 * refusal otherwise.
 */
const DRAIN_BYTES = 256 * MiB;
/** Longest drain of a refused body; it holds only the connection. */
const DRAIN_MS = 10_000;

/** Returns the length of a body that its headers name. */
export function readLength(headers: Headers): number | undefined {
  const length = headers.get('content-length');
  return length === null ? undefined : Number(length);
}

/** A body that is read chunk by chunk. */
export interface Source {
  /**
   * Returns the next bytes, or `undefined` at the end: at most `most`, and at least `least` unless the body ends before.
   * A stream that is not a byte stream decides by itself.
   */
  read(least?: number, most?: number): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/** Opens a body. Bodies from the network are byte streams: each read costs a turn of JavaScript, so buffers are large. */
export function openSource(stream: ReadableStream<Uint8Array>): Source {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = stream.getReader({ mode: 'byob' });
  } catch {
    // Not a byte stream: made by code, as in a test.
    const plain = stream.getReader();
    return { read: async () => (await plain.read()).value, cancel: () => plain.cancel().catch(() => {}) };
  }
  return {
    async read(least = BODY_READ_BYTES, most = SEAL_SEGMENT_BYTES) {
      const { done, value } = await reader.read(new Uint8Array(most), { min: least });
      if (!value || (done && value.byteLength === 0)) return undefined;
      // A few bytes must not keep a large buffer alive while they are buffered.
      return value.byteLength * 2 < value.buffer.byteLength ? value.slice() : value;
    },
    cancel: () => reader.cancel().catch(() => {}),
  };
}

/** Reads a body to its end, within `DRAIN_BYTES` and `DRAIN_MS`, and keeps nothing. */
export async function discardSource(source: Source, runtime: Runtime): Promise<void> {
  const alarm = runtime.after(DRAIN_MS);
  let left = DRAIN_BYTES;
  try {
    while (left > 0) {
      const step = await Promise.race([source.read(), alarm.rings]);
      if (!step || step === late) break;
      left -= step.byteLength;
    }
  } catch {
    // The caller is gone and has nothing left to send.
  } finally {
    alarm.cancel();
    await source.cancel();
  }
}
