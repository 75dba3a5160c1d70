import type { SpeechFormat } from '../../../../shared/speech/speak.ts';
import { type WavTag, wavHeader } from '../../../../shared/speech/wav-header.ts';
import { littleEndian } from '../audio/little-endian.ts';
import { createResampler } from '../audio/resample.ts';
import { toALaw, toMuLaw } from './g711.ts';
import { openOpusStream } from './ogg-opus.ts';

/** Encodes the sound of one answer as it is made. */
export interface SpeechEncoder {
  readonly contentType: string;
  push(samples: Int16Array): Uint8Array;
  /** Returns what is left. */
  finish(): Uint8Array;
  /** Frees what the encoder holds. */
  close(): void;
}

interface SampleCoding {
  /** Format tag of WAV. */
  readonly tag: WavTag;
  readonly bits: 8 | 16;
  /** Name of bare samples (RFC 2586, RFC 3551). */
  readonly type: string;
  readonly encode: (samples: Int16Array) => Uint8Array;
}

const codings: Readonly<Record<Exclude<SpeechFormat['encoding'], 'opus'>, SampleCoding>> = {
  linear16: { tag: 1, bits: 16, type: 'audio/pcm', encode: littleEndian },
  mulaw: { tag: 7, bits: 8, type: 'audio/basic', encode: (samples) => Uint8Array.from(samples, toMuLaw) },
  alaw: { tag: 6, bits: 8, type: 'audio/PCMA', encode: (samples) => Uint8Array.from(samples, toALaw) },
};

/** Returns a conversion of 16-bit samples from one rate to another, and its tail. */
function converter(from: number, to: number) {
  if (from === to) return { push: (samples: Int16Array) => samples, finish: () => new Int16Array(0) };
  const resampler = createResampler(from, to);
  const rounded = (samples: Float32Array) =>
    Int16Array.from(samples, (sample) => Math.max(-32_768, Math.min(32_767, Math.round(sample))));
  return {
    push: (samples: Int16Array) => rounded(resampler.push(Float32Array.from(samples))),
    finish: () => rounded(resampler.finish()),
  };
}

/** Opens an encoder of mono sound at 16 kHz. */
export function openSpeechEncoder({ encoding, container, sampleRate }: SpeechFormat): SpeechEncoder {
  const from = 16_000;
  if (encoding === 'opus') return { contentType: 'audio/ogg', ...openOpusStream(from) };
  const coding = codings[encoding];
  const convert = converter(from, sampleRate);
  let header =
    container === 'wav' ? wavHeader({ rate: sampleRate, tag: coding.tag, bits: coding.bits }) : new Uint8Array(0);
  return {
    contentType: container === 'wav' ? 'audio/wav' : `${coding.type};rate=${sampleRate};channels=1`,
    push(samples) {
      const bytes = Buffer.concat([header, coding.encode(convert.push(samples))]);
      header = new Uint8Array(0);
      return bytes;
    },
    finish: () => coding.encode(convert.finish()),
    close: () => {},
  };
}
