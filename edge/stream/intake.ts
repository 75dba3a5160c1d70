import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Feed } from '../../shared/stream/feed.ts';
import type { AudioLease } from './audio-budget.ts';
import type { SessionEvent } from './dialect.ts';

/** The client's audio on its way into the buffer: drops what repeats, and refuses what does not fit. */
export class Intake {
  readonly #feed: Feed;
  readonly #lease: AudioLease;
  readonly #tell: (event: SessionEvent) => void;
  /** Positioned audio that was not taken and not reported. */
  #refused = { bytes: 0, seconds: 0 };
  /** A client that counts positions was told to go back. */
  #behind = false;
  /** Bytes that were taken. */
  bytes = 0;

  constructor(feed: Feed, lease: AudioLease, tell: (event: SessionEvent) => void) {
    this.#feed = feed;
    this.#lease = lease;
    this.#tell = tell;
  }

  /**
   * Takes one message. Refuses with `frame_invalid` a position that makes no sense, and with `backlog_full` audio
   * without a position that the buffer has no room for: its client cannot send it again.
   */
  take(audio: Uint8Array, position: number | undefined): Result<undefined> {
    if (position === undefined) return this.#push(audio) ? ok(undefined) : no(refuse('backlog_full'));
    const piece = this.#unknown(audio, position);
    if (!piece.ok) return piece;
    if (!this.#push(piece.value)) this.#sendBack(piece.value);
    return ok(undefined);
  }

  /**
   * Ends the input. Refuses with `backlog_full` while audio is missing that the client was told to send again. An input
   * that the edge has ended already, for its length for instance, stays ended for that reason.
   */
  end(): Result<undefined> {
    return this.#behind && !this.#feed.ended ? no(refuse('backlog_full')) : ok(undefined);
  }

  /** Reports how much positioned audio was not taken since the last report. */
  tellOverflow(): void {
    const { bytes, seconds } = this.#refused;
    if (bytes === 0) return;
    this.#refused = { bytes: 0, seconds: 0 };
    this.#tell({ type: 'overflow', position: this.#feed.position, bytes, seconds });
  }

  /** Returns false when there is no room. Audio after the end changes nothing. */
  #push(audio: Uint8Array): boolean {
    if (audio.length === 0 || this.#feed.ended) return true;
    if (!this.#lease.mayGrow(this.#feed.memoryFor(audio)) || !this.#feed.take(audio)) return false;
    this.bytes += audio.length;
    this.#behind = false;
    return true;
  }

  #sendBack(audio: Uint8Array): void {
    const first = !this.#behind;
    this.#behind = true;
    this.#refused.bytes += audio.length;
    this.#refused.seconds += this.#feed.estimate(audio);
    // The rest of a flood is reported now and then, not message by message.
    if (first) this.tellOverflow();
  }

  /** Returns the part of a positioned message that is new, which may be empty. */
  #unknown(audio: Uint8Array, position: number): Result<Uint8Array> {
    const { position: end, format } = this.#feed;
    if (position === end) return ok(audio);
    // Audio behind a message that was not taken is ignored until the client goes back.
    if (position > end) return this.#behind ? ok(nothing) : invalid(`audio is missing before position ${position}`);
    if (position + audio.length <= end) return ok(nothing);
    if (format.encoding !== 'opus') return ok(audio.subarray(end - position));
    return invalid('a packet was sent again with other bounds');
  }
}

const nothing = new Uint8Array();
const invalid = (rule: string): { ok: false; refusal: Refusal } => no(refuse('frame_invalid', { rule }));
