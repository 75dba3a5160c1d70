import { createHash } from 'node:crypto';
import { MiB } from '../../../../shared/bytes.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';
import type { Level } from './degrade.ts';
import type { CachedResult, ResultCache } from './result-cache.ts';

/** Longest recording that is buffered for its digest, as much as the edge buffers for a retry. */
export const LOOKUP_BYTES = MiB;

interface RecordingOwner {
  readonly tenant: string;
  readonly revision: string;
}

/**
 * One recording and the cached results (A20). From level 1 on its result is stored by the digest of its bytes; at level 3
 * it is buffered and looked up before it is recognised. At level 0 bytes pass untouched.
 */
export class StoredRecording {
  readonly #cache: ResultCache;
  readonly #level: Level;
  readonly #owner: RecordingOwner;
  readonly #hash = createHash('sha256');
  #parameters: unknown;
  #segments: Segment[] = [];
  #bytes = 0;
  #complete = false;

  constructor(cache: ResultCache, level: Level, owner: RecordingOwner) {
    this.#cache = cache;
    this.#level = level;
    this.#owner = owner;
  }

  /**
   * Returns the stored result of the recording, or its bytes for the recogniser. `parameters` is every parameter that
   * changes the recognition, besides tenant and revision.
   */
  async find(
    bytes: AsyncIterable<Uint8Array>,
    parameters: unknown,
    now: number,
  ): Promise<{ readonly result: CachedResult } | { readonly bytes: AsyncIterable<Uint8Array> }> {
    this.#parameters = parameters;
    if (this.#level === 0) return { bytes };
    const read = this.#read(bytes);
    if (this.#level < 3) return { bytes: read };
    const buffered: Uint8Array[] = [];
    for (;;) {
      const { done, value } = await read.next();
      if (done) break;
      // The parser reuses the memory of a piece.
      buffered.push(value.slice());
      if (this.#bytes > LOOKUP_BYTES) return { bytes: joined(buffered, read) };
    }
    const result = this.#cache.get(this.#key(), now);
    return result ? { result } : { bytes: joined(buffered, read) };
  }

  /** Notes a segment of the recognition. */
  add(segment: Segment): void {
    if (this.#level > 0 && this.#bytes <= LOOKUP_BYTES) this.#segments.push(segment);
  }

  /** Stores the result of a recording that was short enough to be looked up. */
  store(totals: CachedResult['totals'], now: number): void {
    if (this.#level === 0 || !this.#complete || this.#bytes > LOOKUP_BYTES) return;
    this.#cache.set(this.#key(), { segments: this.#segments, totals }, now);
  }

  async *#read(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of bytes) {
      this.#bytes += piece.length;
      // A long recording is never looked up.
      if (this.#bytes > LOOKUP_BYTES) this.#segments = [];
      else this.#hash.update(piece);
      yield piece;
    }
    this.#complete = true;
  }

  #key(): string {
    const { tenant, revision } = this.#owner;
    return JSON.stringify([tenant, revision, this.#parameters, this.#hash.copy().digest('base64url')]);
  }
}

async function* joined(buffered: readonly Uint8Array[], rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* buffered;
  yield* rest;
}
