// Adapts a revision's language model and lexicon to a text of its domain.
import { randomBytes } from 'node:crypto';
import { copyFile, lstat, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { MiB } from '../../../../shared/bytes.ts';
import { ok } from '../../../../shared/result.ts';
import { isUnspaced, wordsIn } from '../../../../shared/speech/words.ts';
import { boundaryOf } from '../../agent/asr/decode/decoder.ts';
import { spell } from '../../agent/asr/decode/terms.ts';
import type { ModelParameters } from '../../agent/models/models.ts';
import { MODEL_TEXT_BYTES } from '../limits.ts';
import { readRevision } from '../measure/revision.ts';
import { type BuildResult, problem } from '../problem.ts';
import { type NgramModel, readArpa, writeArpa } from './arpa.ts';
import { mixModels } from './mix.ts';

/** Domain text: ten million words, whose n-grams take about 2 GB of memory while they are counted. */
const ADAPT_TEXT_BYTES = 64 * MiB;
/** New words: agents hold the lexicon in memory as a tree, and each word is one more to be confused with. */
const ADAPT_WORDS_MAX = 20_000;

export interface Adapt {
  /** Folder of a recogniser in a repository. */
  readonly folder: string;
  /** UTF-8 text, a sentence a line or with marks between. */
  readonly text: string;
  /** New repository; it must not exist. */
  readonly out: string;
  /** Share of the text in each probability. */
  readonly weight: number;
}

export interface Adapted {
  readonly name: string;
  /** Folders of the revision. */
  readonly parts: readonly string[];
  readonly sentences: number;
  readonly words: number;
  /** Words that the lexicon did not have. */
  readonly added: readonly string[];
  /** Words with a letter or digit that is no token, which are left out. */
  readonly unspellable: number;
  readonly ngrams: readonly number[];
}

const lines = (text: string) => text.trimEnd().split(/\r?\n/);
const unpack = (file: string, bytes: Buffer) =>
  (file.endsWith('.gz') ? gunzipSync(bytes, { maxOutputLength: MODEL_TEXT_BYTES }) : bytes).toString('utf8');
const pack = (file: string, text: string) => (file.endsWith('.gz') ? gzipSync(text, { level: 9 }) : text);

/** Makes a repository with the same models, and the language model and lexicon adapted. Atomic. */
export async function adaptRevision({ folder, text, out, weight }: Adapt): Promise<BuildResult<Adapted>> {
  const [repository, name] = [path.dirname(path.resolve(folder)), path.basename(path.resolve(folder))];
  if (await lstat(out).catch(() => undefined)) return problem('exists', `${out} exists`);
  const size = (await stat(text).catch(() => undefined))?.size;
  if (size === undefined) return problem('unreadable', `${text} cannot be read`);
  if (size > ADAPT_TEXT_BYTES) return problem('bound', `${text} has over ${ADAPT_TEXT_BYTES / MiB} MiB`);
  const revision = await readRevision(repository, name);
  if (!revision.ok) return revision;
  const { parameters } = revision.value.model;
  const files = parameters && 'blank' in parameters ? filesOf(parameters) : undefined;
  if (!files) return problem('unsupported', `${name} has no language_model to adapt`);
  const read = async (file: string) => unpack(file, await readFile(path.join(folder, file)));
  const base = readArpa(await read(files.languageModel));
  if (!base) return problem('unreadable', `${files.languageModel} is no ARPA model`);
  const before = files.lexicon === undefined ? [] : lines(await read(files.lexicon));
  const tokens = lines(await read(files.vocabulary)).map((token) => (token === '<space>' ? ' ' : token));
  const found = readSentences(await readFile(text, 'utf8'), tokens, files.wordBoundary ?? boundaryOf(tokens));
  const known = new Set(before);
  const words = files.lexicon === undefined ? [] : found.sentences.flat();
  const added = [...new Set(words)].filter((word) => !known.has(word)).sort();
  if (found.sentences.length === 0) return problem('unreadable', `${text} has no words that ${name} can spell`);
  if (added.length > ADAPT_WORDS_MAX) return problem('bound', `${text} has over ${ADAPT_WORDS_MAX} new words`);
  const mixed = mixModels(base, found.sentences, weight);
  const changed = new Map([[`${name}/${files.languageModel}`, pack(files.languageModel, writeArpa(mixed))]]);
  if (files.lexicon !== undefined) {
    const lexicon = `${[...before, ...added].sort().join('\n')}\n`;
    changed.set(`${name}/${files.lexicon}`, pack(files.lexicon, lexicon));
  }
  await writeRevision(repository, path.resolve(out), { files: revision.value.files, changed });
  return ok({ name, parts: [...new Set([name, ...revision.value.parts.keys()])], added, ...countsOf(found, mixed) });
}

const countsOf = ({ sentences, unspellable }: Sentences, mixed: NgramModel) => ({
  sentences: sentences.length,
  words: sentences.reduce((sum, words) => sum + words.length, 0),
  unspellable,
  ngrams: mixed.map(({ size }) => size),
});

function filesOf({ vocabulary, lexicon, language_model: languageModel, word_boundary }: ModelParameters) {
  return languageModel === undefined ? undefined : { vocabulary, lexicon, languageModel, wordBoundary: word_boundary };
}

interface Sentences {
  readonly sentences: readonly (readonly string[])[];
  readonly unspellable: number;
}

/** Reads a text in the letters of the model. A word that it cannot spell ends a sentence. */
export function readSentences(text: string, tokens: readonly string[], wordBoundary: number): Sentences {
  const letters = new Map(tokens.map((token, index) => [token, index]));
  let unspellable = 0;
  const wordsOf = (piece: string): string[] => {
    const spelled = spell(piece, letters, wordBoundary);
    if (!spelled) unspellable++;
    const shown = (token: number) => (isUnspaced(tokens[token] ?? '') ? ` ${tokens[token]} ` : tokens[token]);
    const joined = spelled?.map((token) => (token === wordBoundary ? ' ' : shown(token))).join('') ?? '\n';
    return joined.split(' ').filter((word) => word !== '');
  };
  const sentences = text.split(/[\r\n]+|[.?!]+(?=\s)|[。！？]+/).flatMap((sentence) => {
    const words = wordsIn(sentence).flatMap(wordsOf).join(' ');
    return words.split('\n').map((part) => part.split(' ').filter(Boolean));
  });
  return { sentences: sentences.filter(({ length }) => length > 0), unspellable };
}

/** Copies the files of a revision, but for those that changed. */
async function writeRevision(
  repository: string,
  out: string,
  { files, changed }: { readonly files: readonly string[]; readonly changed: ReadonlyMap<string, string | Buffer> },
): Promise<void> {
  const staged = `${out}.${randomBytes(6).toString('hex')}.partial`;
  try {
    for (const file of files) {
      const to = path.join(staged, file);
      await mkdir(path.dirname(to), { recursive: true });
      const bytes = changed.get(file);
      await (bytes === undefined ? copyFile(path.join(repository, file), to) : writeFile(to, bytes));
    }
    await rename(staged, out);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}
