import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

const HEADER_BYTES = 27;
const FIRST_PAGE = 2;

export interface OggGuard {
  push(bytes: Uint8Array): Result<undefined>;
  /** Refuses a file that stops inside a page. */
  finish(): Result<undefined>;
}

const damaged = (rule: string): Result<never, Refusal> => no(refuse('audio_invalid', { rule }));

/**
 * Walks the pages of an Ogg file (RFC 3533 §6) ahead of its decoder: pages must follow each other without a gap and
 * belong to one logical stream. So the decoder never searches garbage, and a second stream cannot bring other channels.
 */
export function createOggGuard(): OggGuard {
  const header = new Uint8Array(HEADER_BYTES + 255);
  let filled = 0;
  /** Bytes of page body still to come. */
  let body = 0;
  let pages = 0;

  /** Header length once it is known, lacing table included. */
  const needed = () => (filled < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + (header[26] ?? 0));

  function readPage(): Result<undefined> {
    if (String.fromCharCode(...header.subarray(0, 4)) !== 'OggS') return damaged('its pages do not follow each other');
    const first = ((header[5] ?? 0) & FIRST_PAGE) !== 0;
    if (first !== (pages === 0)) return damaged('it holds more than one stream');
    body = header.subarray(HEADER_BYTES, filled).reduce((sum, size) => sum + size, 0);
    pages++;
    filled = 0;
    return ok(undefined);
  }

  return {
    push(bytes) {
      let at = 0;
      while (at < bytes.length) {
        if (body > 0) {
          const skipped = Math.min(body, bytes.length - at);
          body -= skipped;
          at += skipped;
          continue;
        }
        const part = bytes.subarray(at, at + needed() - filled);
        header.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled < HEADER_BYTES || filled < needed()) continue;
        const page = readPage();
        if (!page.ok) return page;
      }
      return ok(undefined);
    },
    finish: () => (filled === 0 && body === 0 ? ok(undefined) : no(refuse('audio_truncated', undefined, 'ogg page'))),
  };
}
