// Recordings with their transcripts, from a list beside them.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { jsonOf } from '../../../../shared/json-text.ts';
import { wordsOf } from '../../../../shared/registry/compare-answers.ts';
import { MODEL_SPEAKERS_MAX } from '../../../../shared/registry/evidence.ts';
import { ok } from '../../../../shared/result.ts';
import { openBlob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { readText } from '../scan/data-file.ts';

/** Recordings of a list: a hundred of each of the speakers that a statement may carry. */
const MEASURE_RECORDINGS_MAX = 100_000;
/** Text of one recording: every word is compared with every other. */
const MEASURE_TEXT_CHARACTERS = 20_000;

const line = z.object({
  /** Path relative to the folder of the list. */
  file: z.string().min(1),
  text: z.string().max(MEASURE_TEXT_CHARACTERS),
  speaker: z.string().optional(),
  /** Voice, in lists of synthetic speech. */
  voice: z.string().optional(),
});

export interface Recording {
  readonly file: string;
  readonly text: string;
  /** Recordings without a speaker count as one speaker's, which they may be. */
  readonly speaker: string;
}

export interface RecordingList {
  /** Name of the set: digest of the audio, the texts, the speakers and the counting rules. */
  readonly digest: string;
  readonly recordings: readonly Recording[];
}

/** Definition of a word in `shared/registry/compare-answers.ts`. */
const WORDS = 'NFKC, lower case, letters and digits';
const LIST = /\.(json|jsonl|ndjson)$/;

/** Reads a list, or the only one of a folder: a JSON array, or a line of JSON for each recording. */
export async function readRecordings(place: string): Promise<BuildResult<RecordingList>> {
  const found = await findList(place);
  if (!found.ok) return found;
  const opened = await openBlob(found.value, found.value).catch(() => undefined);
  if (!opened) return problem('unreadable', `${found.value} cannot be read`);
  const text = await readText(opened.blob).finally(opened.close);
  if (!text.ok) return text;
  const recordings = readList(found.value, text.value);
  if (!recordings.ok) return recordings;
  const digest = createHash('sha256').update(JSON.stringify(WORDS));
  for (const { file, text: reference, speaker } of recordings.value) {
    const sound = await digestSound(file);
    if (sound === undefined) return problem('unreadable', `${file} cannot be read`);
    digest.update(`\n${JSON.stringify([sound, speaker, reference])}`);
  }
  return ok({ digest: `sha256:${digest.digest('hex')}`, recordings: recordings.value });
}

async function findList(place: string): Promise<BuildResult<string>> {
  const there = await stat(place).catch(() => undefined);
  if (!there) return problem('unreadable', `${place} cannot be read`);
  if (!there.isDirectory()) return ok(place);
  const lists = (await readdir(place)).filter((name) => LIST.test(name));
  const [only] = lists;
  return only !== undefined && lists.length === 1
    ? ok(path.join(place, only))
    : problem('unreadable', `${place} has ${lists.length} lists (.json, .ndjson) instead of one: name the list itself`);
}

/** Parses a list. Pure. */
export function readList(list: string, text: string): BuildResult<Recording[]> {
  const isArray = text.trimStart().startsWith('[');
  const listed = isArray
    ? jsonOf(text)
    : text
        .split('\n')
        .filter((one) => one.trim() !== '')
        .map(jsonOf);
  const parsed = z.array(line).min(1).safeParse(listed);
  if (!parsed.success) {
    const [{ path: at, message } = { path: [], message: '' }] = parsed.error.issues;
    return problem('unreadable', `${list}: ${at.join('.')} ${message}`);
  }
  if (parsed.data.length > MEASURE_RECORDINGS_MAX)
    return problem('bound', `${list} names ${parsed.data.length} recordings`);
  const silent = parsed.data.find(({ text: reference }) => wordsOf(reference).length === 0);
  if (silent) return problem('unreadable', `${list}: nothing is said in ${silent.file}`);
  const recordings = parsed.data.map(({ file, text: reference, speaker, voice }) => ({
    file: path.resolve(path.dirname(list), file),
    text: reference,
    speaker: speaker ?? voice ?? '',
  }));
  const speakers = new Set(recordings.map(({ speaker }) => speaker)).size;
  if (speakers > MODEL_SPEAKERS_MAX) return problem('bound', `${list} names ${speakers} speakers`);
  return ok(recordings);
}

async function digestSound(file: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
    return hash.digest('hex');
  } catch {
    return undefined;
  }
}

/** Returns at most `most` elements, spread evenly. */
export const spread = <T>(all: readonly T[], most: number): T[] => {
  const count = Math.min(most, all.length);
  return Array.from({ length: count }, (_, at) => all[Math.floor((at * all.length) / count)] as T);
};
