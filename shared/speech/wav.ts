import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { type AdpcmDecoder, adpcmHeadBytes, decodeIma, decodeMs } from './adpcm.ts';
import type { SoundBlock } from './format.ts';
import { bytesOfSample, readFrames, type SampleCoding } from './samples.ts';

/** Lowest sample rate, telephone band; below it there is no speech left to recognise. */
export const AUDIO_RATE_MIN_HZ = 8_000;
/** Highest sample rate of live sound; nothing above it helps recognition. */
export const AUDIO_RATE_MAX_HZ = 48_000;
/** Live sound is mono or stereo; stereo is mixed down. */
export const AUDIO_CHANNELS_MAX = 2;
/** Highest sample rate of a recording: studio files are sent as they are. */
export const RECORDING_RATE_MAX_HZ = 192_000;
/** Channels of a recording: 7.1. They are mixed down. */
export const RECORDING_CHANNELS_MAX = 8;

/** Format of bare samples: little-endian, channels interleaved. */
export interface WavFormat {
  readonly rate: number;
  readonly channels: number;
  readonly bits: 16 | 24 | 32;
  readonly float: boolean;
}

/** Reads a WAV file as it arrives. It holds at most one header field and one frame between calls. */
export interface WavReader {
  /** Returns the audio in the bytes so far, or undefined without any. Refuses formats that are not read. */
  push(bytes: Uint8Array): Result<SoundBlock | undefined>;
  /** Ends the file. Refuses one without a sample (`audio_empty`), or shorter than its header says (`audio_truncated`). */
  finish(): Result<undefined>;
}

const WAVE_FORMAT_EXTENSIBLE = 0xfffe;
/** Longest `fmt ` chunk that is read; the extensible one has 40 bytes. */
const FORMAT_BYTES = 64;
/**
 * Writers to a pipe do not know how long the data will be: they leave 0, 2³² − 1 (FFmpeg) or about 2³¹ (espeak-ng,
 * SoX) in its chunk, and it goes on until the file ends. No recording we take is really that long.
 */
const isOpenEnded = (size: number) => size === 0 || size >= 0x7fff0000;

const invalid = (rule: string): Refusal => refuse('audio_invalid', { rule });

/** Samples of a data chunk, whose blocks decode on their own. A block of PCM is a frame. */
interface WavData {
  readonly blockBytes: number;
  /** Decodes blocks, of which the last one may be cut. */
  readonly decode: (blocks: Uint8Array) => SoundBlock;
}

/** Codings by format tag and bits of a sample. */
const codings: Readonly<Record<string, SampleCoding>> = {
  '1 8': 'u8',
  '1 16': 's16',
  '1 24': 's24',
  '1 32': 's32',
  '3 32': 'f32',
  '3 64': 'f64',
  '6 8': 'alaw',
  '7 8': 'mulaw',
};
const adpcms: Readonly<Record<string, { readonly head: number; readonly decode: AdpcmDecoder }>> = {
  '2 4': { head: adpcmHeadBytes.ms, decode: decodeMs },
  '17 4': { head: adpcmHeadBytes.ima, decode: decodeIma },
};
/** Codes of both channels alternate; more are not defined. */
const ADPCM_CHANNELS_MAX = 2;

interface Shape {
  readonly rate: number;
  readonly channels: number;
  readonly blockBytes: number;
}

function adpcmData({ rate, channels, blockBytes }: Shape, head: number, decode: AdpcmDecoder): WavData {
  return {
    blockBytes,
    decode(bytes) {
      const blocks: Float32Array[][] = [];
      for (let at = 0; at + head * channels <= bytes.length; at += blockBytes) {
        const size = Math.min(blockBytes, bytes.length - at);
        blocks.push(decode(new DataView(bytes.buffer, bytes.byteOffset + at, size), channels));
      }
      const length = blocks.reduce((sum, [first]) => sum + (first?.length ?? 0), 0);
      const joined = Array.from({ length: channels }, (_, channel) => {
        const samples = new Float32Array(length);
        let filled = 0;
        for (const block of blocks) {
          samples.set(block[channel] ?? [], filled);
          filled += block[channel]?.length ?? 0;
        }
        return samples;
      });
      return { rate, channels: joined };
    },
  };
}

/** Parses a `fmt ` chunk (RIFF multimedia data standard, WAVEFORMATEXTENSIBLE). */
export function readWavFormat(chunk: Uint8Array): Result<WavData> {
  if (chunk.length < 16) return no(invalid('its format chunk is too short'));
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  let tag = view.getUint16(0, true);
  const shape = {
    channels: view.getUint16(2, true),
    rate: view.getUint32(4, true),
    blockBytes: view.getUint16(12, true),
  };
  const { channels, rate, blockBytes } = shape;
  const bits = view.getUint16(14, true);
  if (tag === WAVE_FORMAT_EXTENSIBLE) {
    if (chunk.length < 26) return no(invalid('its format chunk is too short'));
    // The first two bytes of the sub-format GUID are the format tag.
    tag = view.getUint16(24, true);
  }
  if (rate === 0) return no(invalid('its header says 0 Hz'));
  if (channels === 0) return no(invalid('its header says 0 channels'));
  const coding = codings[`${tag} ${bits}`];
  const adpcm = adpcms[`${tag} ${bits}`];
  const most = adpcm ? ADPCM_CHANNELS_MAX : RECORDING_CHANNELS_MAX;
  const fits = channels <= most && rate >= AUDIO_RATE_MIN_HZ && rate <= RECORDING_RATE_MAX_HZ;
  if (fits && adpcm && blockBytes > adpcm.head * channels) return ok(adpcmData(shape, adpcm.head, adpcm.decode));
  if (!coding || !fits) {
    const found = `WAV of format ${tag}, ${bits} bits, ${channels} channels and ${rate} Hz`;
    return no(refuse('audio_unsupported', { found }));
  }
  if (blockBytes !== channels * bytesOfSample(coding)) {
    return no(invalid('its frame size does not fit its sample size'));
  }
  return ok({ blockBytes, decode: (bytes) => readFrames(bytes, { coding, rate, channels }) });
}

type State =
  | { at: 'riff' }
  | { at: 'header' }
  | { at: 'format'; size: number }
  | { at: 'skip'; left: number }
  | { at: 'data'; left: number; openEnded: boolean };

/** Returns the state that a chunk header leads to. `format` is absent before a `fmt ` chunk. */
function nextChunk(header: Uint8Array, format: WavData | undefined): Result<State> {
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
  let format: WavData | undefined;
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

  function readData(data: State & { at: 'data' }, { blockBytes, decode }: WavData): SoundBlock | undefined {
    begun ||= held.length > 0;
    const available = data.openEnded ? held.length : Math.min(held.length, data.left);
    const rest = available % blockBytes;
    // The last block of ADPCM may be cut; a partial last frame of PCM is not audio.
    const isLast = !data.openEnded && data.left === available;
    const taken = isLast ? available : available - rest;
    const block = taken > 0 ? decode(held.subarray(0, taken)) : undefined;
    held = held.slice(taken);
    if (!data.openEnded) {
      data.left -= taken;
      done = data.left === 0;
    }
    return block?.channels[0]?.length ? block : undefined;
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
