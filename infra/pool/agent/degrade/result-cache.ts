import { MiB } from '../../../../shared/bytes.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';

/** All stored results; a transcript of a minute takes about 50 kB with its words. */
export const RESULT_CACHE_BYTES = 16 * MiB;
/** One stored result; longer transcripts are of recordings that are not looked up. */
export const RESULT_BYTES = MiB;
/** Age of a result that is not served any more: a client that retries does so within minutes. */
export const RESULT_MS = 10 * 60_000;

/** The recognition of one recording. */
export interface CachedResult {
  readonly segments: readonly Segment[];
  readonly totals: { readonly seconds: number; readonly speechSeconds: number; readonly channels?: number };
}

interface Stored {
  readonly result: CachedResult;
  readonly bytes: number;
  readonly until: number;
}

/**
 * Results of recordings by key, bounded in bytes and age; the least recently used one gives way. A key contains the
 * tenant and every parameter of the recognition, so no tenant gets a result of another.
 */
export class ResultCache {
  readonly #stored = new Map<string, Stored>();
  readonly #capacity: number;
  #bytes = 0;

  constructor(capacity: number = RESULT_CACHE_BYTES) {
    this.#capacity = capacity;
  }

  get(key: string, now: number): CachedResult | undefined {
    const found = this.#stored.get(key);
    if (!found) return undefined;
    this.#remove(key, found);
    if (found.until <= now) return undefined;
    this.#insert(key, found);
    return found.result;
  }

  set(key: string, result: CachedResult, now: number): void {
    const bytes = Buffer.byteLength(JSON.stringify(result)) + key.length;
    if (bytes > RESULT_BYTES) return;
    const before = this.#stored.get(key);
    if (before) this.#remove(key, before);
    this.#insert(key, { result, bytes, until: now + RESULT_MS });
    for (const [name, one] of this.#stored) {
      if (this.#bytes <= this.#capacity && one.until > now) break;
      this.#remove(name, one);
    }
  }

  clear(): void {
    this.#stored.clear();
    this.#bytes = 0;
  }

  get size(): number {
    return this.#stored.size;
  }

  #insert(key: string, stored: Stored): void {
    this.#stored.set(key, stored);
    this.#bytes += stored.bytes;
  }

  #remove(key: string, { bytes }: Stored): void {
    this.#stored.delete(key);
    this.#bytes -= bytes;
  }
}
