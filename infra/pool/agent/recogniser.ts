import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { createDecoder } from './decode/decoder.ts';
import type { RepositoryModel } from './models.ts';
import type { Recogniser } from './recognise.ts';

/** Names of tokens that stand for something else than themselves, as `tokens.txt` writes them. */
const SPECIAL: Record<string, string> = { '<blank>': '', '<space>': ' ' };

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (file.endsWith('.gz') ? await promisify(gunzip)(bytes) : bytes).toString('utf8');
}

const readLines = async (file: string) => (await readText(file)).split(/\r?\n/).filter((line) => line !== '');

/** Reads what a model brings besides its network. Rejects when a file is missing: the repository is broken then. */
export async function createRecogniser({ folder, parameters, description }: RepositoryModel): Promise<Recogniser> {
  const { vocabulary, lexicon, language_model: languageModel, blank, word_boundary: wordBoundary } = parameters;
  const at = (file: string) => path.join(folder, file);
  const tokens = (await readLines(at(vocabulary))).map((token) => SPECIAL[token] ?? token);
  return {
    model: description.name,
    frameSeconds: parameters.frame_milliseconds / 1_000,
    decoder: createDecoder({
      tokens,
      blank,
      wordBoundary,
      // A line may go on with a count or a pronunciation behind the word.
      ...(lexicon && { lexicon: (await readLines(at(lexicon))).map((line) => line.split(/\s/, 1)[0] ?? '') }),
      ...(languageModel && { languageModel: await readText(at(languageModel)) }),
    }),
  };
}
