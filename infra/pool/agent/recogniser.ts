import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { createDecoder } from './decode/decoder.ts';
import type { RepositoryModel } from './models.ts';
import type { Recogniser } from './recognise.ts';

/** Names of tokens that stand for something else than themselves, as `tokens.txt` writes them. */
const SPECIAL: Record<string, string> = { '<blank>': '', '<space>': ' ' };

/** Text of a file of the model; unpacked when its name ends in `.gz`. */
async function readText(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (file.endsWith('.gz') ? await promisify(gunzip)(bytes) : bytes).toString('utf8');
}

const lines = (text: string) => text.trimEnd().split(/\r?\n/);

/** Reads what a model brings besides its network. Rejects when a file is missing: the repository is broken then. */
export async function createRecogniser({ folder, parameters, description }: RepositoryModel): Promise<Recogniser> {
  const { vocabulary, lexicon, language_model: languageModel } = parameters;
  const read = (file: string | undefined) => (file === undefined ? undefined : readText(path.join(folder, file)));
  const [tokens = '', words, model] = await Promise.all([read(vocabulary), read(lexicon), read(languageModel)]);
  return {
    model: description.name,
    frameSeconds: parameters.frame_milliseconds / 1_000,
    decoder: createDecoder({
      tokens: lines(tokens).map((token) => SPECIAL[token] ?? token),
      blank: parameters.blank,
      wordBoundary: parameters.word_boundary,
      ...(words !== undefined && { lexicon: lines(words) }),
      ...(model !== undefined && { languageModel: model }),
    }),
  };
}
