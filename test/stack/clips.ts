import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Clip {
  readonly file: string;
  readonly text: string;
  readonly voice: string;
}

const folder = path.join(import.meta.dirname, '..', 'clips');

/** The recordings kept in the repository, each with the words that were spoken. */
export const clips: readonly Clip[] = JSON.parse(readFileSync(path.join(folder, 'clips.json'), 'utf8'));

export const clipPath = (clip: Clip): string => path.join(folder, clip.file);
export const clipBytes = (clip: Clip): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(clipPath(clip)));

/** The first clip in a format, by the end of its name. */
export function clipLike(ending: string): Clip {
  const found = clips.find((clip) => clip.file.endsWith(ending));
  if (!found) throw new Error(`no clip ends in ${ending}`);
  return found;
}

/** A WAV file of 16-bit mono silence, or of the samples given. */
export function wav(samples: Int16Array, rate = 16_000, claimedBytes = samples.byteLength): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(44 + samples.byteLength);
  const view = new DataView(bytes.buffer);
  const ascii = (at: number, text: string) => {
    for (let i = 0; i < text.length; i += 1) view.setUint8(at + i, text.charCodeAt(i));
  };
  ascii(0, 'RIFF');
  view.setUint32(4, 36 + claimedBytes, true);
  ascii(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  ascii(36, 'data');
  view.setUint32(40, claimedBytes, true);
  bytes.set(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength), 44);
  return bytes;
}
