import { frameBytes, type StreamFormat } from '../../shared/stream/format.ts';

/** `OggS`, the version, and the flags: where a page begins (RFC 3533 §6). */
const PAGE = [0x4f, 0x67, 0x67, 0x53, 0];
const FLAGS = 7;

/**
 * Behind a gap an agent begins anew: with a whole sample, or with a page of Ogg. What comes from a client without
 * positions may begin in the middle of one; so much of it is left out.
 */
export class Aligner {
  readonly #paged: boolean;
  readonly #frame: number;
  /** Bytes of the frame that is under way. */
  #phase = 0;
  /** Bytes until the next frame. */
  #skip = 0;
  /** A page is being looked for; of a beginning of one the bytes are kept. */
  #seeking = false;
  #held = new Uint8Array(0);

  constructor(format: StreamFormat) {
    this.#paged = format.encoding === 'ogg-opus';
    this.#frame = frameBytes(format);
  }

  /** What follows something that was lost cannot be understood without a gap. */
  get needsGap(): boolean {
    return this.#paged;
  }

  /** What comes next begins with a whole frame. */
  begin(): void {
    this.#phase = 0;
  }

  /** A gap lies before what comes next. */
  gap(): void {
    this.#skip = (this.#frame - this.#phase) % this.#frame;
    this.#seeking = this.#paged;
    this.#held = new Uint8Array(0);
  }

  /** A message that goes no further. */
  lose({ length }: Uint8Array): void {
    this.#phase = (this.#phase + length) % this.#frame;
  }

  /** What of a message can be understood. */
  take(audio: Uint8Array): Uint8Array {
    this.lose(audio);
    if (this.#seeking) return this.#seek(audio);
    if (this.#skip === 0) return audio;
    const skipped = Math.min(this.#skip, audio.length);
    this.#skip -= skipped;
    return audio.subarray(skipped);
  }

  #seek(audio: Uint8Array): Uint8Array {
    const all = new Uint8Array(this.#held.length + audio.length);
    all.set(this.#held);
    all.set(audio, this.#held.length);
    const last = all.length - PAGE.length;
    for (let at = 0; at < last; at++) {
      if (!PAGE.every((byte, index) => all[at + index] === byte)) continue;
      if ((all[at + PAGE.length] as number) > FLAGS) continue;
      this.#seeking = false;
      this.#held = new Uint8Array(0);
      return all.subarray(at);
    }
    this.#held = all.slice(Math.max(0, last));
    return new Uint8Array(0);
  }
}
