import type { SoundBlock } from './format.ts';

/** Codings of samples: PCM and floats of either byte order, and G.711. */
export type SampleCoding =
  | 'u8'
  | 's8'
  | 's16'
  | 's24'
  | 's32'
  | 'f32'
  | 'f64'
  | 's16be'
  | 's24be'
  | 's32be'
  | 'f32be'
  | 'f64be'
  | 'mulaw'
  | 'alaw';

/** ITU-T G.711, µ-law: sign, three bits of segment, four of step, all inverted. */
function muLaw(code: number): number {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits >> 4) & 7)) - 0x84;
  return (bits & 0x80 ? -magnitude : magnitude) / 0x8000;
}

/** ITU-T G.711, A-law: the same fields, every other bit inverted. */
function aLaw(code: number): number {
  const bits = code ^ 0x55;
  const segment = (bits >> 4) & 7;
  const step = ((bits & 0x0f) << 4) + 8;
  const magnitude = segment === 0 ? step : (step + 0x100) << (segment - 1);
  return (bits & 0x80 ? magnitude : -magnitude) / 0x8000;
}

export const muLawTable = Float32Array.from({ length: 256 }, (_, code) => muLaw(code));
export const aLawTable = Float32Array.from({ length: 256 }, (_, code) => aLaw(code));

/** Clips loud floats; NaN stays, for the decoder to refuse. */
const clipped = (sample: number) => Math.max(-1, Math.min(1, sample));

interface Coding {
  readonly bytes: number;
  readonly read: (view: DataView, at: number) => number;
}

const codings: Readonly<Record<SampleCoding, Coding>> = {
  u8: { bytes: 1, read: (view, at) => (view.getUint8(at) - 0x80) / 0x80 },
  s8: { bytes: 1, read: (view, at) => view.getInt8(at) / 0x80 },
  s16: { bytes: 2, read: (view, at) => view.getInt16(at, true) / 0x8000 },
  s24: { bytes: 3, read: (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 0x800000 },
  s32: { bytes: 4, read: (view, at) => view.getInt32(at, true) / 0x80000000 },
  f32: { bytes: 4, read: (view, at) => clipped(view.getFloat32(at, true)) },
  f64: { bytes: 8, read: (view, at) => clipped(view.getFloat64(at, true)) },
  s16be: { bytes: 2, read: (view, at) => view.getInt16(at) / 0x8000 },
  s24be: { bytes: 3, read: (view, at) => ((view.getInt8(at) << 16) | view.getUint16(at + 1)) / 0x800000 },
  s32be: { bytes: 4, read: (view, at) => view.getInt32(at) / 0x80000000 },
  f32be: { bytes: 4, read: (view, at) => clipped(view.getFloat32(at)) },
  f64be: { bytes: 8, read: (view, at) => clipped(view.getFloat64(at)) },
  mulaw: { bytes: 1, read: (view, at) => muLawTable[view.getUint8(at)] as number },
  alaw: { bytes: 1, read: (view, at) => aLawTable[view.getUint8(at)] as number },
};

export interface SampleFormat {
  readonly coding: SampleCoding;
  readonly rate: number;
  readonly channels: number;
}

export const bytesOfSample = (coding: SampleCoding): number => codings[coding].bytes;

/** Turns whole frames, whose channels interleave, into one array per channel. */
export function readFrames(bytes: Uint8Array, { coding, rate, channels }: SampleFormat): SoundBlock {
  const { bytes: size, read } = codings[coding];
  const frames = Math.floor(bytes.length / (size * channels));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    rate,
    channels: Array.from({ length: channels }, (_, channel) => {
      const samples = new Float32Array(frames);
      for (let i = 0; i < frames; i++) samples[i] = read(view, (i * channels + channel) * size);
      return samples;
    }),
  };
}
