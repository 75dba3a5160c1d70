import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Clip {
  readonly file: string;
  readonly text: string;
  readonly voice: string;
}

const folder = path.join(import.meta.dirname, '..', 'clips');

/** Recordings of the repository, each with its spoken words. */
export const clips: readonly Clip[] = JSON.parse(readFileSync(path.join(folder, 'clips.json'), 'utf8'));

export const clipPath = (clip: Clip): string => path.join(folder, clip.file);
export const clipBytes = (clip: Clip): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(clipPath(clip)));

/** The first clip in a format, by the end of its name. */
export function clipLike(ending: string): Clip {
  const found = clips.find((clip) => clip.file.endsWith(ending));
  if (!found) throw new Error(`no clip ends in ${ending}`);
  return found;
}
