import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import type { SoundBlock } from './format.ts';

/** Lowest sample rate, telephone band; below it there is no speech left to recognise. */
export const AUDIO_RATE_MIN_HZ = 8_000;
/** Highest sample rate; nothing above it helps recognition. */
export const AUDIO_RATE_MAX_HZ = 48_000;
/** Mono or stereo; stereo is mixed down. */
export const AUDIO_CHANNELS_MAX = 2;

/** Format of samples in the data chunk: little-endian, channels interleaved. */
export interface WavFormat {
  readonly rate: number;
  readonly channels: number;
  readonly bits: 16 | 24 | 32;
  readonly float: boolean;
}

/** Reads a WAV file as it arrives. It holds at most one header field and one frame between calls. */
export interface WavReader {
  /** Returns the audio in the bytes so far, or undefined without any. Refuses formats other than PCM and float. */
  push(bytes: Uint8Array): Result<SoundBlock | undefined>;
  /** Ends the file. Refuses one without a sample (`audio_empty`), or shorter than its header says (`audio_truncated`). */
  finish(): Result<undefined>;
}

const WAVE_FORMAT_PCM = 1;
const WAVE_FORMAT_IEEE_FLOAT = 3;
const WAVE_FORMAT_EXTENSIBLE = 0xfffe;
/** Longest `fmt ` chunk that is read; the extensible one has 40 bytes. */
const FORMAT_BYTES = 64;
/**
 * Writers to a pipe do not know how long the data will be: they leave 0, 2³² − 1 (FFmpeg) or about 2³¹ (espeak-ng,
 * SoX) in its chunk, and it goes on until the file ends. No recording we take is really that long.
 */
const isOpenEnded = (size: number) => size === 0 || size >= 0x7fff0000;

const invalid = (rule: string): Refusal => refuse('audio_invalid', { rule });

/** Parses a `fmt ` chunk (RIFF multimedia data standard, WAVEFORMATEXTENSIBLE). */
export function readWavFormat(chunk: Uint8Array): Result<WavFormat> {
  if (chunk.length < 16) return no(invalid('its format chunk is too short'));
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  let tag = view.getUint16(0, true);
  const channels = view.getUint16(2, true);
  const rate = view.getUint32(4, true);
  const frameBytes = view.getUint16(12, true);
  const bits = view.getUint16(14, true);
  if (tag === WAVE_FORMAT_EXTENSIBLE) {
    if (chunk.length < 26) return no(invalid('its format chunk is too short'));
    // The first two bytes of the sub-format GUID are the format tag.
    tag = view.getUint16(24, true);
  }
  if (rate === 0) return no(invalid('its header says 0 Hz'));
  if (channels === 0) return no(invalid('its header says 0 channels'));
  const detail = `wav tag ${tag}, ${bits} bit, ${channels} channels, ${rate} Hz`;
  const float = tag === WAVE_FORMAT_IEEE_FLOAT;
  const known = float ? bits === 32 : tag === WAVE_FORMAT_PCM && (bits === 16 || bits === 24 || bits === 32);
  const fits = channels <= AUDIO_CHANNELS_MAX && rate >= AUDIO_RATE_MIN_HZ && rate <= AUDIO_RATE_MAX_HZ;
  if (!known || !fits) return no(refuse('audio_unsupported', undefined, detail));
  if (frameBytes !== (channels * bits) / 8) return no(invalid('its frame size does not fit its sample size'));
  return ok({ rate, channels, bits: bits as WavFormat['bits'], float });
}

const readers: Record<string, (view: DataView, at: number) => number> = {
  'int 16': (view, at) => view.getInt16(at, true) / 0x8000,
  'int 24': (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 0x800000,
  'int 32': (view, at) => view.getInt32(at, true) / 0x80000000,
  // Samples of a float file that are not numbers become silence, and loud ones are clipped.
  'float 32': (view, at) => Math.max(-1, Math.min(1, view.getFloat32(at, true) || 0)),
};

/** Turns whole frames into one array per channel. */
function readWavFrames(bytes: Uint8Array, format: WavFormat): SoundBlock {
  const sampleBytes = format.bits / 8;
  const frames = Math.floor(bytes.length / (sampleBytes * format.channels));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = readers[`${format.float ? 'float' : 'int'} ${format.bits}`];
  if (!read) throw new Error(`no reader for ${format.bits} bit`);
  const channels = Array.from({ length: format.channels }, (_, channel) => {
    const samples = new Float32Array(frames);
    for (let i = 0; i < frames; i++) samples[i] = read(view, (i * format.channels + channel) * sampleBytes);
    return samples;
  });
  return { rate: format.rate, channels };
}

type State =
  | { at: 'riff' }
  | { at: 'header' }
  | { at: 'format'; size: number }
  | { at: 'skip'; left: number }
  | { at: 'data'; left: number; openEnded: boolean };

/** Returns the state that a chunk header leads to. `format` is absent before a `fmt ` chunk. */
function nextChunk(header: Uint8Array, format: WavFormat | undefined): Result<State> {
  const name = String.fromCharCode(...header.subarray(0, 4));
  const size = new DataView(header.buffer, header.byteOffset).getUint32(4, true);
  if (name === 'fmt ') {
    if (size > FORMAT_BYTES) return no(invalid('its format chunk is too long'));
    return ok({ at: 'format', size });
  }
  if (name !== 'data') return ok({ at: 'skip', left: size + (size & 1) });
  if (!format) return no(invalid('it has no format chunk before its data'));
  return ok({ at: 'data', left: size, openEnded: isOpenEnded(size) });
}

export function createWavReader(): WavReader {
  let state: State = { at: 'riff' };
  let held: Uint8Array = new Uint8Array(0);
  let format: WavFormat | undefined;
  /** The data chunk was read to its end; later chunks are tags. */
  let done = false;
  /** A byte of the data chunk arrived. */
  let begun = false;

  /** Removes one header field from the front, or waits for more bytes. */
  function take(count: number): Uint8Array | undefined {
    if (held.length < count) return undefined;
    const taken = held.subarray(0, count);
    held = held.subarray(count);
    return taken;
  }

  /** Reads one part of the header; undefined when more bytes are needed. */
  function step(): Result<State> | undefined {
    if (state.at === 'riff') return take(12) && ok({ at: 'header' });
    if (state.at === 'header') {
      const header = take(8);
      return header && nextChunk(header, format);
    }
    if (state.at === 'skip') {
      const skipped = Math.min(state.left, held.length);
      held = held.subarray(skipped);
      const left = state.left - skipped;
      if (left > 0) state = { at: 'skip', left };
      return left > 0 ? undefined : ok({ at: 'header' });
    }
    if (state.at === 'format') {
      const chunk = take(state.size + (state.size & 1));
      if (!chunk) return undefined;
      const read = readWavFormat(chunk.subarray(0, state.size));
      if (!read.ok) return read;
      format = read.value;
      return ok({ at: 'header' });
    }
    return undefined;
  }

  function readData(data: State & { at: 'data' }, shape: WavFormat): SoundBlock | undefined {
    const frameBytes = (shape.bits / 8) * shape.channels;
    begun ||= held.length > 0;
    const available = data.openEnded ? held.length : Math.min(held.length, data.left);
    const whole = available - (available % frameBytes);
    const block = whole > 0 ? readWavFrames(held.subarray(0, whole), shape) : undefined;
    held = held.slice(whole);
    if (!data.openEnded) {
      data.left -= whole;
      // A partial last frame is not audio; writers that miscount leave one.
      done = data.left < frameBytes && held.length >= data.left;
    }
    return block;
  }

  return {
    push(bytes) {
      if (done) return ok(undefined);
      if (held.length === 0) held = bytes;
      else {
        const joined = new Uint8Array(held.length + bytes.length);
        joined.set(held);
        joined.set(bytes, held.length);
        held = joined;
      }
      while (state.at !== 'data') {
        const next = step();
        // A copy, so that the buffer does not retain the caller's chunk.
        if (!next) held = held.slice();
        if (!next) return ok(undefined);
        if (!next.ok) return next;
        state = next.value;
      }
      return ok(format && readData(state, format));
    },
    finish() {
      if (done) return ok(undefined);
      if (state.at === 'header' && held.length === 0) return no(invalid('it has no data chunk'));
      if (state.at === 'data' && state.openEnded) return ok(undefined);
      if (state.at === 'data' && !begun) return no(refuse('audio_empty'));
      return no(refuse('audio_truncated', undefined, `wav ended in ${state.at}`));
    },
  };
}
