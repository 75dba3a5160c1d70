import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Feed } from '../../shared/stream/feed.ts';
import { Aligner } from './align.ts';
import type { SessionEvent } from './dialect.ts';

/** The client's audio on its way into the feed: what is new of it, what is too much, and what is missing. */
export class Intake {
  readonly #feed: Feed;
  readonly #tell: (event: SessionEvent) => void;
  readonly #aligner: Aligner;
  /** Not taken and not told. */
  #lost = { bytes: 0, seconds: 0 };
  /** Seconds that were not taken and the agent has not been told of; absent when nothing is missing. */
  #missing: number | undefined;
  /** Seconds that are missing and too few to be told. */
  #owed = 0;
  /** A client that counts positions was told to go back. */
  #behind = false;
  /** Bytes that were taken. */
  bytes = 0;

  constructor(feed: Feed, tell: (event: SessionEvent) => void) {
    this.#feed = feed;
    this.#tell = tell;
    this.#aligner = new Aligner(feed.format);
  }

  /** A client without positions begins anew: with a whole sample, a packet or a page. */
  begin(): void {
    this.#aligner.begin();
  }

  /** Takes one message. Refuses with `frame_invalid` when its position makes no sense. */
  take(audio: Uint8Array, position: number | undefined): Result<undefined> {
    if (position === undefined) {
      this.#takeNext(audio);
      return ok(undefined);
    }
    const piece = this.#unknown(audio, position);
    if (!piece.ok) return piece;
    if (piece.value.length > 0 && !this.#feed.ended && !this.#push(piece.value)) this.#refuse(piece.value, true);
    return ok(undefined);
  }

  /** So many seconds were not heard. True when that was noted. */
  gap(seconds: number): boolean {
    this.#owed += seconds;
    const missing = this.#owed;
    if (missing < limits.streamGapSeconds.value) return false;
    const at = this.#feed.time;
    if (!this.#feed.gap(missing)) return false;
    this.#owed = 0;
    this.#aligner.gap();
    this.#tell({ type: 'gap', at, seconds: missing });
    return true;
  }

  /** Tells how much was not taken since that was told last. */
  tellOverflow(): void {
    const { bytes, seconds } = this.#lost;
    if (bytes === 0) return;
    this.#lost = { bytes: 0, seconds: 0 };
    this.#tell({ type: 'overflow', position: this.#feed.position, bytes, seconds });
  }

  #takeNext(audio: Uint8Array): void {
    if (audio.length === 0 || this.#feed.ended) return;
    if (!this.#feed.hasRoom(audio)) {
      this.#refuse(audio, false);
      this.#aligner.lose(audio);
      return;
    }
    if (this.#missing !== undefined) this.#close();
    const whole = this.#aligner.take(audio);
    if (whole.length > 0 && !this.#push(whole)) this.#refuse(whole, false);
  }

  #push(audio: Uint8Array): boolean {
    if (!this.#feed.take(audio)) return false;
    this.bytes += audio.length;
    this.#behind = false;
    return true;
  }

  #refuse(audio: Uint8Array, positioned: boolean): void {
    const first = this.#missing === undefined && !this.#behind;
    const seconds = this.#feed.estimate(audio);
    this.#lost.bytes += audio.length;
    this.#lost.seconds += seconds;
    if (positioned) this.#behind = true;
    else this.#missing = (this.#missing ?? 0) + seconds;
    // The rest of a flood is told now and then, not message by message.
    if (first) this.tellOverflow();
  }

  /** Room again: agent and client are told where audio is missing. */
  #close(): void {
    const missing = this.#missing ?? 0;
    this.tellOverflow();
    this.#missing = undefined;
    // Half a page must not be followed by another one, however short the gap.
    this.gap(this.#aligner.needsGap ? Math.max(missing, limits.streamGapSeconds.value) : missing);
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
