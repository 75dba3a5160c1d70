import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createGreedyDecoder } from './greedy.ts';
import type { RepositoryModel } from './models.ts';
import type { Recogniser } from './recognise.ts';

/** Names of tokens that stand for something else than themselves, as `tokens.txt` writes them. */
const SPECIAL: Record<string, string> = { '<blank>': '', '<space>': ' ' };

/** Reads what a model brings besides its network. Rejects when a file is missing: the repository is broken then. */
export async function createRecogniser({ folder, parameters, description }: RepositoryModel): Promise<Recogniser> {
  const text = await readFile(path.join(folder, parameters.vocabulary), 'utf8');
  const tokens = text
    .trimEnd()
    .split(/\r?\n/)
    .map((token) => SPECIAL[token] ?? token);
  return {
    model: description.name,
    frameSeconds: parameters.frame_milliseconds / 1_000,
    decoder: createGreedyDecoder({ tokens, blank: parameters.blank, wordBoundary: parameters.word_boundary }),
  };
}
