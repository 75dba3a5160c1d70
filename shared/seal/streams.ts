import { limits } from '../limits.ts';
import { refuse } from '../refusal.ts';
import { no, type Result } from '../result.ts';
import type { Opened, Opener, Sealer } from './records.ts';

/**
 * Seals a body: `head` at once as record 0, then segments of `limits.sealSegmentBytes`, then a final record
 * with the rest, possibly empty. Reads on demand and holds at most one segment. An error of the body errors
 * this stream before a final record, so that the peer knows it was cut; cancelling cancels the body.
 */
export function sealStream(
  head: Uint8Array | undefined,
  body: ReadableStream<Uint8Array>,
  sealer: Sealer,
): ReadableStream<Uint8Array> {
  return sealAfter(head && (() => sealer.seal(head, false)), body, sealer);
}

/** The same with a first record of the caller's making. */
export function sealAfter(
  first: (() => Uint8Array | Promise<Uint8Array>) | undefined,
  body: ReadableStream<Uint8Array>,
  sealer: Sealer,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const nextSegment = segmentsOf(reader);
  let pending = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (pending) {
          const own = pending;
          pending = undefined;
          controller.enqueue(await own());
          return;
        }
        const { segment, last } = await nextSegment();
        controller.enqueue(await sealer.seal(segment, last));
        if (last) controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // A queue of our own would be read ahead of a slow reader.
    { highWaterMark: 0 },
  );
}

/** The records of a body that is there whole, in pieces of at most `limits.sealSegmentBytes`: a record for each. */
export async function sealPieces(pieces: readonly Uint8Array[], sealer: Sealer): Promise<Uint8Array[]> {
  const records: Uint8Array[] = [];
  // One after the other: the runtime is no faster when it has several to do.
  for (const [at, piece] of pieces.entries()) records.push(await sealer.seal(piece, at === pieces.length - 1));
  return pieces.length > 0 ? records : [await sealer.seal(new Uint8Array(), true)];
}

/**
 * Opens a sealed body record by record. Reads a chunk only when the records of the last one were taken. A refusal
 * comes last: a record that does not open, or a body that ends or breaks before its final record. Leaving the loop
 * early cancels the body.
 */
export function openStream(body: ReadableStream<Uint8Array>, opener: Opener): AsyncGenerator<Result<Opened>> {
  return openRead(body.getReader(), opener);
}

/**
 * Opens records from a reader that the caller keeps, to cancel it while a record is awaited, or after it has
 * read `start`.
 */
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

/** Cuts what the reader yields into full segments; the last one has the rest, which may be empty. */
function segmentsOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): () => Promise<{ segment: Uint8Array; last: boolean }> {
  const size = limits.sealSegmentBytes.value;
  let chunk = new Uint8Array() as Uint8Array;
  return async () => {
    let segment: Uint8Array | undefined;
    let filled = 0;
    for (;;) {
      // The common case of large chunks costs no copy here.
      if (!segment && chunk.length >= size) {
        const whole = chunk.subarray(0, size);
        chunk = chunk.subarray(size);
        return { segment: whole, last: false };
      }
      segment ??= new Uint8Array(size);
      const piece = chunk.subarray(0, size - filled);
      segment.set(piece, filled);
      filled += piece.length;
      chunk = chunk.subarray(piece.length);
      if (filled === size) return { segment, last: false };
      const { done, value } = await reader.read();
      if (done) return { segment: segment.subarray(0, filled), last: true };
      chunk = value;
    }
  };
}
