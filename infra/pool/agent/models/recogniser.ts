import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { createDecoder, type WordDecoder } from '../asr/decode/decoder.ts';
import type { Recogniser, TextRecogniser } from '../asr/segment.ts';
import { createTextReader } from '../asr/text/text-reader.ts';
import { readTokenTexts } from '../asr/text/token-texts.ts';
import type { ModelParameters, SpeechModel } from './models.ts';
import type { TextParameters } from './text-parameters.ts';

/** Plain data that a recogniser is made of, in this process or in a worker. */
export type RecogniserSource = Pick<SpeechModel, 'description' | 'engineModel' | 'folder' | 'parameters'>;

/** Text of the tokens in `tokens.txt` that have a spelled name. */
const SPELLED_TOKENS: Record<string, string> = { '<blank>': '', '<space>': ' ' };

/** Returns the text of a file of the model, unpacked when its name ends in `.gz`. */
async function readText(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (file.endsWith('.gz') ? await promisify(gunzip)(bytes) : bytes).toString('utf8');
}

const lines = (text: string) => text.trimEnd().split(/\r?\n/);

async function loadText(
  { engineModel: model, folder }: RecogniserSource,
  parameters: TextParameters,
): Promise<TextRecogniser> {
  const { vocabulary, token_form, inputs, outputs } = parameters;
  const tokens =
    outputs.includes('TEXT') || vocabulary === undefined
      ? undefined
      : readTokenTexts(lines(await readText(path.join(folder, vocabulary))), token_form);
  return {
    model,
    text: createTextReader(outputs, tokens),
    takesLength: inputs.includes('AUDIO_LENGTH'),
    takesPrompt: inputs.includes('PROMPT'),
  };
}

async function loadDecoder(folder: string, parameters: ModelParameters): Promise<WordDecoder> {
  const { vocabulary, lexicon, language_model: languageModel } = parameters;
  const read = (file: string | undefined) => (file === undefined ? undefined : readText(path.join(folder, file)));
  const [tokens = '', words, model] = await Promise.all([read(vocabulary), read(lexicon), read(languageModel)]);
  return createDecoder({
    tokens: lines(tokens).map((token) => SPELLED_TOKENS[token] ?? token),
    blank: parameters.blank,
    wordBoundary: parameters.word_boundary,
    ...(words !== undefined && { lexicon: lines(words) }),
    ...(model !== undefined && { languageModel: model }),
  });
}

/**
 * Makes recognisers. Models with the same vocabulary, lexicon and language model (precisions of one network) share
 * one decoder, the largest thing in memory. `identify` returns what equal files have in common. Rejects when a file is missing.
 */
export function createRecognisers(
  identify: (file: string) => string = (file) => file,
): (model: RecogniserSource) => Promise<Recogniser> {
  const decoders = new Map<string, WeakRef<WordDecoder>>();
  return async (model) => {
    const { parameters } = model;
    if ('outputs' in parameters) return loadText(model, parameters);
    const { vocabulary, lexicon = '', language_model: languageModel = '', blank, word_boundary } = parameters;
    const files = [vocabulary, lexicon, languageModel].map((file) => identify(path.resolve(model.folder, file)));
    const key = [...files, blank, word_boundary].join('\n');
    const decoder = decoders.get(key)?.deref() ?? (await loadDecoder(model.folder, parameters));
    decoders.set(key, new WeakRef(decoder));
    return {
      model: model.engineModel,
      frameSeconds: parameters.frame_milliseconds / 1_000,
      decoder,
    };
  };
}
