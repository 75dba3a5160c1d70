// Audio of the streams in these tests: two sentences, each followed by silence, 16 kHz, 16 bit.
import { readLiveAudio } from '../../../infra/cli/live/audio.ts';
import { clipBytes, clips } from '../../stack/clips.ts';

const RATE = 16_000;

/** Seconds of nothing. */
export const silence = (seconds: number): Uint8Array => new Uint8Array(Math.round(seconds * RATE) * 2);

export function speech(file: string): { readonly bytes: Uint8Array; readonly text: string; readonly seconds: number } {
  const clip = clips.find((one) => one.file === file);
  if (!clip) throw new Error(`there is no clip ${file}`);
  const read = readLiveAudio(clipBytes(clip));
  if ('problem' in read || read.audio.rate !== RATE) throw new Error(`${file} is not 16 kHz`);
  const { samples } = read.audio;
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  return { bytes, text: clip.text, seconds: samples.length / RATE };
}

export const join = (...parts: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

const first = speech('weather.wav');
const second = speech('number.wav');
const PAUSE = 1;

/** The whole audio, and the start of its second sentence, seconds. */
export const story = {
  bytes: join(first.bytes, silence(PAUSE), second.bytes, silence(PAUSE)),
  second: first.seconds + PAUSE,
  texts: [first.text, second.text],
};

/** Returns the bytes between two seconds. */
export const part = (from: number, to = Number.POSITIVE_INFINITY): Uint8Array =>
  story.bytes.subarray(...[from, to].map((seconds) => Math.min(story.bytes.length, Math.round(seconds * RATE) * 2)));
