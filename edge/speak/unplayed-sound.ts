import { MiB } from '../../shared/bytes.ts';

/**
 * Sound that a client may have before it plays it: the longest text at half the speed in 48 kHz `linear16`, 58 MB.
 * Half of the memory of an isolate.
 */
const UNPLAYED_BYTES = 64 * MiB;

/**
 * Bounds the sound that one client leaves unread: the runtime buffers it, and does not say how much. Time pays for
 * it, as audio pays for the replies of a live stream: a client that plays the sound reads as much.
 */
export class UnplayedSound {
  readonly #byteRate: number;
  readonly #now: () => number;
  #bytes = 0;
  /** Time of the last sound, epoch ms. */
  #at: number;

  /** `byteRate`: bytes of one second of sound. */
  constructor(byteRate: number, now: () => number) {
    this.#byteRate = byteRate;
    this.#now = now;
    this.#at = now();
  }

  /** Counts sound. Returns false when the client would have too much that is not played. */
  add(bytes: number): boolean {
    const now = this.#now();
    const played = ((now - this.#at) * this.#byteRate) / 1_000;
    this.#at = now;
    this.#bytes = Math.max(0, this.#bytes - played) + bytes;
    return this.#bytes <= UNPLAYED_BYTES;
  }
}
