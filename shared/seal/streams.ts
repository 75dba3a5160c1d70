import { joined } from '../bytes.ts';
import { refuse } from '../refusal.ts';
import { no, type Result } from '../result.ts';
import { SEAL_SEGMENT_BYTES } from './limits.ts';
import type { Opened, Opener, Sealer } from './records.ts';
import { SEAL_RECORD_BYTES } from './records.ts';

/** Seals the first record of a body; its later records follow from the same sealer. */
type SealFirst = () => Uint8Array | Promise<Uint8Array>;

/**
 * Seals a body: `head` at once as record 0, then segments of `SEAL_SEGMENT_BYTES`, then a final record with the
 * rest, possibly empty. Reads on demand, holds one chunk, and seals all full segments of a chunk into one piece. An
 * error of the body errors this stream before a final record, so that the other side sees the cut; cancelling cancels
 * the body.
 */
export function sealStream(
  head: Uint8Array | undefined,
  body: ReadableStream<Uint8Array>,
  sealer: Sealer,
): ReadableStream<Uint8Array> {
  return sealAfter(head && (() => sealer.seal(head, false)), body, sealer);
}

/** Seals a stream after a first record that the caller seals. */
export function sealAfter(
  first: SealFirst | undefined,
  body: ReadableStream<Uint8Array>,
  sealer: Sealer,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const nextSegments = segmentsOf(reader);
  let pending = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (pending) {
          const seal = pending;
          pending = undefined;
          controller.enqueue(await seal());
          return;
        }
        const { segments, last } = await nextSegments();
        controller.enqueue(await sealSegments(segments, last, sealer));
        if (last) controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // A queue would read ahead of a slow reader.
    { highWaterMark: 0 },
  );
}

/** Seals a whole body behind its first record: one record for each segment of `pieces`, all in one piece of memory. */
export async function sealWhole(
  first: SealFirst,
  pieces: readonly Uint8Array[],
  sealer: Sealer,
): Promise<Uint8Array<ArrayBuffer>> {
  const head = await first();
  const segments = pieces.flatMap(cut);
  return sealSegments(segments.length > 0 ? segments : [EMPTY], true, sealer, head);
}

/** Seals one segment after another: WebCrypto is no faster with several calls in flight. */
async function sealSegments(
  segments: readonly Uint8Array[],
  last: boolean,
  sealer: Sealer,
  head: Uint8Array = EMPTY,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = segments.reduce((sum, { length }) => sum + length + OVERHEAD, head.length);
  const memory = new Uint8Array(bytes);
  memory.set(head);
  let used = head.length;
  const room = (size: number) => {
    used += size;
    return memory.subarray(used - size, used);
  };
  for (const [at, segment] of segments.entries()) {
    await sealer.seal(segment, last && at === segments.length - 1, room);
  }
  return memory.subarray(0, used);
}

const EMPTY = new Uint8Array();

/** Bytes of a record beyond its plaintext, at most. */
const OVERHEAD = SEAL_RECORD_BYTES - SEAL_SEGMENT_BYTES;

/** Cuts a piece into segments; the last one may be shorter. */
function cut(piece: Uint8Array): Uint8Array[] {
  const size = SEAL_SEGMENT_BYTES;
  const count = Math.ceil(piece.length / size);
  return Array.from({ length: count }, (_, at) => piece.subarray(at * size, (at + 1) * size));
}

/**
 * Opens a sealed body record by record. Reads a chunk only when the records of the last one were taken. A refusal
 * comes last: a record that does not open, or a body that ends or breaks before its final record. Leaving the loop
 * early cancels the body.
 */
export function openStream(body: ReadableStream<Uint8Array>, opener: Opener): AsyncGenerator<Result<Opened>> {
  return openRead(body.getReader(), opener);
}

/** Opens what a reader returns, so that the caller can cancel it during a read; `start` was read from it before. */
export async function* openRead(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  opener: Opener,
  start?: Uint8Array,
): AsyncGenerator<Result<Opened>> {
  let drained = false;
  let begun = start;
  try {
    for (;;) {
      if (begun) {
        const own = begun;
        begun = undefined;
        for await (const opened of opener.open(own)) {
          yield opened;
          if (!opened.ok) return;
        }
      }
      // A body that breaks says why in an error of the platform; here it is one more way of ending too early.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }) as const);
      if (done) break;
      for await (const opened of opener.open(value)) {
        yield opened;
        if (!opened.ok) return;
      }
    }
    drained = true;
    if (!opener.finished()) yield no(refuse('seal_broken', undefined, 'the body ended before its final record'));
  } finally {
    if (!drained) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

/** Returns the full segments of what the reader yields, as they fill; the last one has the rest, which may be empty. */
function segmentsOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): () => Promise<{ segments: readonly Uint8Array[]; last: boolean }> {
  const size = SEAL_SEGMENT_BYTES;
  /** Pieces of a segment that is not full yet. */
  let open: Uint8Array[] = [];
  let length = 0;
  return async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { segments: [joined(open)], last: true };
      const missing = size - length;
      open.push(value.length < missing ? value : value.subarray(0, missing));
      length += value.length;
      if (length < size) continue;
      const segments = [open.length === 1 ? (open[0] as Uint8Array) : joined(open), ...cut(value.subarray(missing))];
      const last = segments.at(-1) as Uint8Array;
      open = last.length < size ? [last] : [];
      length = last.length % size;
      return { segments: open.length > 0 ? segments.slice(0, -1) : segments, last: false };
    }
  };
}
