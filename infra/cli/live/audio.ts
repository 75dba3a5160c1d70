// A recording as a microphone would give it: 16-bit mono in tenths of a second, again and again.
import { publicText, type Refusal } from '../../../shared/refusal.ts';
import { type SoundFormat, sniffFormat } from '../../../shared/speech/format.ts';
import { createWavReader } from '../../../shared/speech/wav.ts';

/** Length of a frame, as official clients send them. */
export const FRAME_SECONDS = 0.1;
/** Silence between two passes, which ends an utterance. */
const PAUSE_SECONDS = 1;

export interface LiveAudio {
  /** Samples per second. */
  readonly rate: number;
  readonly samples: Int16Array;
}

const names: Readonly<Record<Exclude<SoundFormat, 'wav'>, string>> = {
  aiff: 'AIFF',
  flac: 'FLAC',
  mp3: 'MP3',
  opus: 'Ogg Opus',
  vorbis: 'Ogg Vorbis',
  webm: 'WebM or Matroska',
  mp4: 'MP4',
  aac: 'AAC',
  amr: 'AMR',
};

/** `problem` completes a sentence that begins with the name of the file. */
type Read = { readonly audio: LiveAudio } | { readonly problem: string };

/** Reads a WAV file. Several channels become their mean. */
export function readLiveAudio(file: Uint8Array): Read {
  const format = sniffFormat(file);
  if (format === undefined) return { problem: 'is not an audio file: a live stream needs a WAV file' };
  if (format !== 'wav') {
    return {
      problem: `is a file of ${names[format]}: a live stream needs a WAV file; without --live it can be transcribed`,
    };
  }
  const broken = (refusal: Refusal) => ({ problem: `cannot be streamed: ${publicText(refusal)}` });
  const reader = createWavReader();
  const read = reader.push(file);
  if (!read.ok) return broken(read.refusal);
  const end = reader.finish();
  if (!end.ok) return broken(end.refusal);
  const { rate = 16_000, channels = [] } = read.value ?? {};
  const length = channels[0]?.length ?? 0;
  const samples = new Int16Array(length);
  for (let at = 0; at < length; at += 1) {
    const mean = channels.reduce((sum, channel) => sum + (channel[at] ?? 0), 0) / channels.length;
    samples[at] = Math.max(-0x8000, Math.min(0x7fff, Math.round(mean * 0x8000)));
  }
  return { audio: { rate, samples } };
}

/** Straight lines between samples: good enough to be understood, and nothing that would cost a load client its cores. */
export function toRate({ rate, samples }: LiveAudio, wanted: number): LiveAudio {
  if (rate === wanted) return { rate, samples };
  const made = new Int16Array(Math.floor((samples.length * wanted) / rate));
  for (let at = 0; at < made.length; at += 1) {
    const place = (at * rate) / wanted;
    const before = Math.floor(place);
    const [left = 0, right = left] = [samples[before], samples[before + 1]];
    made[at] = Math.round(left + (right - left) * (place - before));
  }
  return { rate: wanted, samples: made };
}

/** Seconds of one pass over the recording with the pause behind it. */
export const passSeconds = ({ rate, samples }: LiveAudio): number => samples.length / rate + PAUSE_SECONDS;

/** Frame `index` of the recording repeated for ever, with a pause after each pass; little-endian bytes. */
export function createFrames({ rate, samples }: LiveAudio): (index: number) => Uint8Array {
  const pass = new Int16Array(samples.length + PAUSE_SECONDS * rate);
  pass.set(samples);
  const length = Math.round(FRAME_SECONDS * rate);
  return (index) => {
    const frame = new DataView(new ArrayBuffer(length * 2));
    for (let at = 0; at < length; at += 1) frame.setInt16(at * 2, pass[(index * length + at) % pass.length] ?? 0, true);
    return new Uint8Array(frame.buffer);
  };
}
