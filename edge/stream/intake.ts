import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Feed } from '../../shared/stream/feed.ts';
import type { SessionEvent } from './dialect.ts';

/** Seconds. A shorter gap is the jitter of a network, and would end an utterance for nothing: it waits for the next. */
const GAP_LEAST = 0.1;

/** The client's audio on its way into the feed: what is new of it, what is too much, and what is missing. */
export class Intake {
  readonly #feed: Feed;
  readonly #tell: (event: SessionEvent) => void;
  /** Not taken and not told; `missing`: seconds that the agent has not been told of. */
  #lost = { bytes: 0, seconds: 0, missing: 0 };
  /** Seconds that are missing and too few to be told. */
  #owed = 0;
  /** A client that counts positions was told to go back. */
  #behind = false;
  /** Bytes that were taken. */
  bytes = 0;

  constructor(feed: Feed, tell: (event: SessionEvent) => void) {
    this.#feed = feed;
    this.#tell = tell;
  }

  /** Takes one message. Refuses with `frame_invalid` when its position makes no sense. */
  take(audio: Uint8Array, position: number | undefined): Result<undefined> {
    const piece = position === undefined ? ok(audio) : this.#unknown(audio, position);
    if (!piece.ok) return piece;
    const { value } = piece;
    if (value.length === 0 || this.#feed.ended) return ok(undefined);
    if (!this.#feed.hasRoom(value)) {
      this.#refuse(value, position !== undefined);
      return ok(undefined);
    }
    if (this.#lost.missing > 0) this.#close();
    if (!this.#feed.take(value)) {
      this.#refuse(value, position !== undefined);
      return ok(undefined);
    }
    this.bytes += value.length;
    this.#behind = false;
    return ok(undefined);
  }

  /** So many seconds were not heard. True when that was noted. */
  gap(seconds: number): boolean {
    this.#owed += seconds;
    const missing = this.#owed;
    if (missing < GAP_LEAST) return false;
    const at = this.#feed.time;
    if (!this.#feed.gap(missing)) return false;
    this.#owed = 0;
    this.#tell({ type: 'gap', at, seconds: missing });
    return true;
  }

  /** Tells how much was not taken since that was told last. */
  tellOverflow(): void {
    const { bytes, seconds, missing } = this.#lost;
    if (bytes === 0) return;
    this.#lost = { bytes: 0, seconds: 0, missing };
    this.#tell({ type: 'overflow', position: this.#feed.position, bytes, seconds });
  }

  #refuse(audio: Uint8Array, positioned: boolean): void {
    const first = this.#lost.missing === 0 && !this.#behind;
    const seconds = this.#feed.secondsOf(audio);
    this.#lost.bytes += audio.length;
    this.#lost.seconds += seconds;
    if (positioned) this.#behind = true;
    else this.#lost.missing += seconds;
    // The rest of a flood is told now and then, not message by message.
    if (first) this.tellOverflow();
  }

  /** Room again: agent and client are told where audio is missing. */
  #close(): void {
    const { missing } = this.#lost;
    this.tellOverflow();
    this.#lost.missing = 0;
    this.gap(missing);
  }

  /** The part of a positioned message that is new, which may be nothing. */
  #unknown(audio: Uint8Array, position: number): Result<Uint8Array> {
    const { position: end, format } = this.#feed;
    if (position === end) return ok(audio);
    // What comes behind something that was not taken is not taken either, until the client goes back.
    if (position > end) return this.#behind ? ok(nothing) : invalid(`audio is missing before position ${position}`);
    if (position + audio.length <= end) return ok(nothing);
    if (format.encoding !== 'opus') return ok(audio.subarray(end - position));
    return invalid('a packet was sent again with other bounds');
  }
}

const nothing = new Uint8Array();
const invalid = (rule: string): { ok: false; refusal: Refusal } => no(refuse('frame_invalid', { rule }));
