import { limits } from '../shared/limits.ts';
import { late, type Surroundings } from './clock.ts';

/** A body before anything was read of it. */
export interface Upload {
  /** Bytes that it has, when the caller said so. */
  readonly length: number | undefined;
  readonly stream: () => ReadableStream<Uint8Array> | null;
  /** All of it at once; not together with `stream`. */
  readonly whole: () => Promise<ArrayBuffer>;
}

/** Bytes that the body will have, if the caller said so. */
export function readLength(headers: Headers): number | undefined {
  const length = headers.get('content-length');
  return length === null ? undefined : Number(length);
}

/** `length`: as `readLength` tells it. */
export function uploadOf(request: Request, length: number | undefined): Upload {
  return {
    length,
    stream: () => request.body,
    whole: () => request.arrayBuffer(),
  };
}

/** A body that is read piece by piece. */
export interface Source {
  /** The next bytes, `undefined` at the end. With `spare` they may lie in that memory, which is then no longer its own. */
  read(spare?: ArrayBuffer): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/**
 * Bodies from the network are byte streams: read into large buffers, they come in a tenth of the pieces. `atLeast`:
 * bytes worth waiting for in one read, unless the body ends before.
 */
export function openSource(stream: ReadableStream<Uint8Array>, atLeast: number = limits.bodyReadBytes.value): Source {
  let bytes: ReadableStreamBYOBReader;
  try {
    bytes = stream.getReader({ mode: 'byob' });
  } catch {
    // Not a byte stream: made by code, as in a test.
    const reader = stream.getReader();
    return { read: async () => (await reader.read()).value, cancel: () => reader.cancel().catch(() => {}) };
  }
  return {
    async read(spare) {
      const { done, value } = await bytes.read(
        new Uint8Array(spare ?? new ArrayBuffer(limits.sealSegmentBytes.value)),
        {
          min: atLeast,
        },
      );
      if (!value || (done && value.byteLength === 0)) return undefined;
      if (spare) return value;
      // A few bytes must not keep a large buffer alive while they are held.
      return value.byteLength * 2 < value.buffer.byteLength ? value.slice() : value;
    },
    cancel: () => bytes.cancel().catch(() => {}),
  };
}

/** Reads a body to its end, within `limits.lingerBytes` and `limits.lingerMs`, and keeps nothing. */
export async function discardSource(source: Source, surroundings: Surroundings): Promise<void> {
  const alarm = surroundings.after(limits.lingerMs.value);
  let left = limits.lingerBytes.value;
  // The same memory again and again: of a flood that is refused nothing should be left to collect.
  let spare = new ArrayBuffer(limits.sealSegmentBytes.value);
  try {
    while (left > 0) {
      const step = await Promise.race([source.read(spare), alarm.rings]);
      if (!step || step === late) break;
      left -= step.byteLength;
      spare = step.buffer as ArrayBuffer;
    }
  } catch {
    // The caller is gone, which is one way of having nothing left to send.
  } finally {
    alarm.cancel();
    await source.cancel();
  }
}
