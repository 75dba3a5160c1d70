import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { createDecoder, type WordDecoder } from '../asr/decode/decoder.ts';
import type { Recogniser } from '../asr/segment.ts';
import type { SpeechModel } from './models.ts';

/** Plain data that a recogniser is made of, in this process or in a worker. */
export type RecogniserSource = Pick<SpeechModel, 'description' | 'engineModel' | 'folder' | 'parameters'>;

/** Tokens of `tokens.txt` that do not stand for their own text. */
const SPECIAL: Record<string, string> = { '<blank>': '', '<space>': ' ' };

/** Returns the text of a file of the model, unpacked when its name ends in `.gz`. */
async function readText(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (file.endsWith('.gz') ? await promisify(gunzip)(bytes) : bytes).toString('utf8');
}

const lines = (text: string) => text.trimEnd().split(/\r?\n/);

async function loadDecoder({ folder, parameters }: RecogniserSource): Promise<WordDecoder> {
  const { vocabulary, lexicon, language_model: languageModel } = parameters;
  const read = (file: string | undefined) => (file === undefined ? undefined : readText(path.join(folder, file)));
  const [tokens = '', words, model] = await Promise.all([read(vocabulary), read(lexicon), read(languageModel)]);
  return createDecoder({
    tokens: lines(tokens).map((token) => SPECIAL[token] ?? token),
    blank: parameters.blank,
    wordBoundary: parameters.word_boundary,
    ...(words !== undefined && { lexicon: lines(words) }),
    ...(model !== undefined && { languageModel: model }),
  });
}

/**
 * Makes recognisers. Models with the same vocabulary, lexicon and language model (precisions of one network) share
 * one decoder, the largest thing in memory. Rejects when a file is missing.
 */
export function createRecognisers(): (model: RecogniserSource) => Promise<Recogniser> {
  const decoders = new Map<string, Promise<WordDecoder>>();
  return async (model) => {
    const { vocabulary, lexicon = '', language_model: languageModel = '', blank, word_boundary } = model.parameters;
    const files = [vocabulary, lexicon, languageModel].map((file) => path.resolve(model.folder, file));
    const key = [...files, blank, word_boundary].join('\n');
    const decoder = decoders.get(key) ?? loadDecoder(model);
    decoders.set(key, decoder);
    return {
      model: model.engineModel,
      frameSeconds: model.parameters.frame_milliseconds / 1_000,
      decoder: await decoder,
    };
  };
}
