import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { adtsRate, type SoundFormat, sniffBytes, sniffFormat } from '../../shared/speech/format.ts';
import { AUDIO_RATE_MAX_HZ, AUDIO_RATE_MIN_HZ } from '../../shared/speech/wav.ts';
import type { Encoding, StreamFormat } from '../../shared/stream/format.ts';

/** Head of a live WAV file before its sound: tags fit, pictures do not. */
export const WAV_HEADER_BYTES = 64 * KiB;
/**
 * Chunks of a live WAV file before its sound: real ones have a handful, and each costs time however short it
 * is.
 */
export const WAV_HEADER_CHUNKS_MAX = 256;

/** Audio from a container, and its format. */
export interface Unpacked {
  readonly format: StreamFormat;
  readonly audio: Uint8Array;
}

/** Encodings by `wFormatTag` and bits of a sample (RIFF multimedia data standard). */
const wavEncodings: Readonly<Record<string, Encoding>> = {
  '1 16': 'linear16',
  '3 32': 'linear32',
  '6 8': 'alaw',
  '7 8': 'mulaw',
};
const EXTENSIBLE = 0xfffe;

/** Names of chunks, as big-endian numbers. */
const FORMAT = 0x666d7420;
const DATA = 0x64617461;

/** Names of formats that only recordings may have. */
const recordings: Readonly<Partial<Record<SoundFormat, string>>> = {
  aiff: 'AIFF',
  amr: 'AMR',
  flac: 'FLAC',
  mp3: 'MP3',
  mp4: 'MP4',
  vorbis: 'Ogg Vorbis',
};

/** Returns the format of a container that the agent reads; undefined for others. */
function readContainer(sniffed: SoundFormat | undefined, head: Uint8Array): StreamFormat | undefined {
  if (sniffed === 'opus') return { encoding: 'ogg-opus', rate: 48_000, channels: 1 };
  if (sniffed === 'webm') return { encoding: 'webm', rate: 48_000, channels: 1 };
  if (sniffed === 'aac') return { encoding: 'aac', rate: adtsRate(head) ?? 0, channels: 1 };
  return undefined;
}

/**
 * Detects the format of a stream whose client named none: a WAV file as it is written, Ogg Opus, WebM or ADTS. Returns
 * the samples of a WAV, and all of the others, which the agent reads packet by packet. Buffers at most `WAV_HEADER_BYTES`, and reads each
 * chunk once, however small the messages are.
 */
export class Container {
  /** Buffered bytes, with spare capacity. */
  #buffer = new Uint8Array(0);
  #filled = 0;
  #isWav = false;
  /** Offset of the next chunk of a WAV, number of chunks before it, and the format of one of them. */
  #at = 12;
  #chunks = 0;
  #wavFormat: StreamFormat | undefined;
  #format: StreamFormat | undefined;
  /** The refusal that every later call repeats. */
  #refused: Result<never> | undefined;
  /** Bytes of samples left; tags may follow them. */
  #left = Number.POSITIVE_INFINITY;

  /**
   * Returns the audio in a message, or undefined while the format is unknown. Refuses with `audio_live_unsupported` or
   * `audio_invalid`.
   */
  push(bytes: Uint8Array): Result<Unpacked | undefined> {
    if (this.#format) return ok(this.#take(this.#format, bytes));
    if (this.#refused) return this.#refused;
    const read = this.#detect(this.#append(bytes));
    if (read.ok) return read;
    this.#refused = read;
    this.#flush();
    return read;
  }

  #detect(held: Uint8Array<ArrayBuffer>): Result<Unpacked | undefined> {
    if (this.#isWav) return this.#readWav(held);
    const sniffed = sniffFormat(held);
    const format = readContainer(sniffed, held);
    if (format) {
      if (!isLiveRate(format.rate)) return no(refuse('audio_live_unsupported', { found: `AAC of ${format.rate} Hz` }));
      this.#format = format;
      return ok({ format, audio: this.#flush() });
    }
    this.#isWav = sniffed === 'wav';
    if (this.#isWav) return this.#readWav(held);
    if (sniffed === undefined && held.length < sniffBytes) return ok(undefined);
    const found = sniffed && recordings[sniffed];
    return no(refuse('audio_live_unsupported', found === undefined ? undefined : { found }, 'without encoding'));
  }

  /** Returns the buffered bytes and empties the buffer. */
  #flush(): Uint8Array {
    const held = this.#buffer.subarray(0, this.#filled);
    this.#buffer = new Uint8Array(0);
    this.#filled = 0;
    return held;
  }

  #take(format: StreamFormat, bytes: Uint8Array): Unpacked {
    const audio = bytes.subarray(0, Math.max(0, Math.min(bytes.length, this.#left)));
    this.#left -= audio.length;
    return { format, audio };
  }

  /** Buffers a message and returns all buffered bytes. Capacity doubles, so the cost per byte is constant. */
  #append(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const filled = this.#filled + bytes.length;
    if (filled > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(filled, 2 * this.#buffer.length));
      grown.set(this.#buffer.subarray(0, this.#filled));
      this.#buffer = grown;
    }
    this.#buffer.set(bytes, this.#filled);
    this.#filled = filled;
    return this.#buffer.subarray(0, filled);
  }

  #readWav(held: Uint8Array<ArrayBuffer>): Result<Unpacked | undefined> {
    const view = new DataView(held.buffer, held.byteOffset, held.byteLength);
    while (this.#at + 8 <= held.length) {
      const name = view.getUint32(this.#at);
      const size = view.getUint32(this.#at + 4, true);
      const body = this.#at + 8;
      if (name === DATA) return this.#begin(size, held.subarray(body));
      if (body + size > held.length) break;
      if (name === FORMAT) {
        const read = readFormat(new DataView(held.buffer, held.byteOffset + body, size));
        if (!read.ok) return read;
        this.#wavFormat = read.value;
      }
      this.#chunks += 1;
      if (this.#chunks > WAV_HEADER_CHUNKS_MAX) return tooLong('chunks', WAV_HEADER_CHUNKS_MAX);
      this.#at = body + size + (size & 1);
    }
    if (held.length > WAV_HEADER_BYTES) return tooLong('bytes', WAV_HEADER_BYTES);
    return ok(undefined);
  }

  /** Begins the samples, which are the rest of the file. */
  #begin(size: number, first: Uint8Array): Result<Unpacked> {
    if (!this.#wavFormat) return no(refuse('audio_invalid', { rule: 'it has no format chunk before its data' }));
    this.#format = this.#wavFormat;
    this.#flush();
    // A writer that records does not know the size, and leaves 0 or a number beyond all recordings.
    if (size !== 0 && size < 0x7fff0000) this.#left = size;
    return ok(this.#take(this.#format, first));
  }
}

const isLiveRate = (rate: number) => rate >= AUDIO_RATE_MIN_HZ && rate <= AUDIO_RATE_MAX_HZ;

const tooLong = (unit: string, most: number): Result<never> =>
  no(refuse('audio_invalid', { rule: `its header is over ${most} ${unit}` }));

function readFormat(chunk: DataView): Result<StreamFormat> {
  if (chunk.byteLength < 16) return no(refuse('audio_invalid', { rule: 'its format chunk is too short' }));
  const tag = chunk.getUint16(0, true);
  const channels = chunk.getUint16(2, true);
  const rate = chunk.getUint32(4, true);
  const bits = chunk.getUint16(14, true);
  // The first two bytes of the sub-format GUID are the format tag.
  const actual = tag === EXTENSIBLE && chunk.byteLength >= 26 ? chunk.getUint16(24, true) : tag;
  const encoding = wavEncodings[`${actual} ${bits}`];
  if (!encoding || !isLiveRate(rate) || (channels !== 1 && channels !== 2)) {
    const found = `WAV of format ${actual}, ${bits} bits, ${channels} channels and ${rate} Hz`;
    return no(refuse('audio_live_unsupported', { found }));
  }
  return ok({ encoding, rate, channels });
}
