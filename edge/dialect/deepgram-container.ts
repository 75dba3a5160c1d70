import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { concat } from '../../shared/seal/bytes.ts';
import { sniffBytes, sniffFormat } from '../../shared/speech/format.ts';
import type { Encoding, StreamFormat } from '../../shared/stream/format.ts';

/** Sound that was in a container, and how it is written; the format comes with the first of it. */
export interface Unpacked {
  readonly format: StreamFormat;
  readonly audio: Uint8Array;
}

/** `wFormatTag` and bits of a sample (RIFF multimedia data standard) → encoding. */
const wavEncodings: Readonly<Record<string, Encoding>> = {
  '1 16': 'linear16',
  '3 32': 'linear32',
  '6 8': 'alaw',
  '7 8': 'mulaw',
};
const EXTENSIBLE = 0xfffe;

/**
 * Finds out what a client sends that did not say: a WAV file as it is written, or Ogg Opus. Of a WAV only the samples
 * come out, of Ogg everything, since the agent reads it page by page. Holds at most `limits.streamHeaderBytes`.
 */
export class Container {
  #held = new Uint8Array(0);
  #format: StreamFormat | undefined;
  /** Bytes of samples still to come; tags may follow. */
  #left = Number.POSITIVE_INFINITY;
  /** It begins with no header of any kind: it may be the middle of something. */
  headless = false;

  /** Sound in what arrived; `undefined` while it is not known yet. Refuses with `audio_live_unsupported` or `audio_invalid`. */
  push(bytes: Uint8Array): Result<Unpacked | undefined> {
    if (this.#format) return ok(this.#take(this.#format, bytes));
    const held = concat(this.#held, bytes);
    const sniffed = sniffFormat(held);
    if (sniffed === 'opus') {
      this.#format = { encoding: 'ogg-opus', rate: 48_000, channels: 1 };
      this.#held = new Uint8Array(0);
      return ok({ format: this.#format, audio: held });
    }
    if (sniffed === 'wav') return this.#readWav(held);
    if (sniffed !== undefined || held.length >= sniffBytes) {
      const detail = `stream without encoding: ${sniffed ?? 'unknown'}`;
      this.headless = true;
      this.#held = new Uint8Array(held);
      return no(refuse('audio_live_unsupported', undefined, detail));
    }
    this.#held = new Uint8Array(held);
    return ok(undefined);
  }

  /** Everything since the beginning, when it is headless or not known yet. */
  give(): Uint8Array {
    const held = this.#held;
    this.#held = new Uint8Array(0);
    return held;
  }

  #take(format: StreamFormat, bytes: Uint8Array): Unpacked {
    const audio = bytes.subarray(0, Math.max(0, Math.min(bytes.length, this.#left)));
    this.#left -= audio.length;
    return { format, audio };
  }

  #readWav(held: Uint8Array): Result<Unpacked | undefined> {
    const view = new DataView(held.buffer, held.byteOffset, held.byteLength);
    let format: StreamFormat | undefined;
    for (let at = 12; at + 8 <= held.length; ) {
      const name = String.fromCharCode(...held.subarray(at, at + 4));
      const size = view.getUint32(at + 4, true);
      const body = at + 8;
      if (name === 'data') {
        if (!format) return no(refuse('audio_invalid', { rule: 'it has no format chunk before its data' }));
        this.#format = format;
        this.#held = new Uint8Array(0);
        // Who writes while recording does not know the size and leaves 0, or a number beyond all recordings.
        if (size !== 0 && size < 0x7fff0000) this.#left = size;
        return ok(this.#take(format, held.slice(body)));
      }
      if (body + size > held.length) break;
      if (name === 'fmt ') {
        const read = readFormat(new DataView(held.buffer, held.byteOffset + body, size));
        if (!read.ok) return read;
        format = read.value;
      }
      at = body + size + (size & 1);
    }
    if (held.length > limits.streamHeaderBytes.value) {
      return no(refuse('audio_invalid', { rule: `its header is over ${limits.streamHeaderBytes.value} bytes` }));
    }
    this.#held = new Uint8Array(held);
    return ok(undefined);
  }
}

function readFormat(chunk: DataView): Result<StreamFormat> {
  if (chunk.byteLength < 16) return no(refuse('audio_invalid', { rule: 'its format chunk is too short' }));
  const tag = chunk.getUint16(0, true);
  const channels = chunk.getUint16(2, true);
  const rate = chunk.getUint32(4, true);
  const bits = chunk.getUint16(14, true);
  // The first two bytes of the sub-format GUID are the tag of old.
  const actual = tag === EXTENSIBLE && chunk.byteLength >= 26 ? chunk.getUint16(24, true) : tag;
  const encoding = wavEncodings[`${actual} ${bits}`];
  const detail = `wav tag ${actual}, ${bits} bit, ${channels} channels, ${rate} Hz`;
  const fits = rate >= limits.audioRateMin.value && rate <= limits.audioRateMax.value;
  if (!encoding || !fits || (channels !== 1 && channels !== 2))
    return no(refuse('audio_live_unsupported', undefined, detail));
  return ok({ encoding, rate, channels });
}
