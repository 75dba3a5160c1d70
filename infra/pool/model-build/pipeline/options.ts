import { type PipelineName, pipelines } from './pipelines.ts';

/** Words that a decoder may choose from: more make each utterance slower and rare words no likelier (M6). */
export const VOCABULARY_WORDS_MAX = 200_000;

type Shape = 'text' | 'flag' | 'count' | 'milliseconds' | 'seconds' | 'file' | 'language' | readonly string[];

export interface Option {
  readonly shape: Shape;
  readonly help: string;
  readonly fallback?: string;
  /** Part that a file option becomes. */
  readonly part?: string;
  readonly of: readonly PipelineName[];
}

const all = Object.keys(pipelines) as PipelineName[];
const speech: readonly PipelineName[] = ['speech_recognition', 'speech_synthesis'];
const speechOnly: readonly PipelineName[] = ['speech_recognition'];
const speaks: readonly PipelineName[] = ['speech_synthesis'];
const labels: readonly PipelineName[] = ['token_classification', 'intent_slot', 'text_classification'];

/** Build options. Names are those of the public riva-build where it has one. */
export const options: Readonly<Record<string, Option>> = {
  name: { shape: 'text', help: 'name of the deployed model (default: that of the first archive)', of: all },
  language_code: { shape: 'language', help: 'BCP 47 tags, separated by commas', of: all },
  max_batch_size: { shape: 'count', help: 'requests in one execution', fallback: '32', of: all },
  'nn.max_batch_size': { shape: 'count', help: 'the same for the networks, where it must be smaller', of: all },
  max_queue_delay_microseconds: {
    shape: 'count',
    help: 'how long a request may wait for others',
    fallback: '5000',
    of: all,
  },
  'nn.use_trt_fp32': { shape: 'flag', help: 'TensorRT computes in 32 bits', fallback: 'false', of: all },
  domain_name: { shape: 'text', help: 'what the model knows about; it becomes part of its name', of: labels },
  wire: {
    shape: 'text',
    help: 'ROLE.INPUT=OUTPUT,… where a network gets what another one gives under another name',
    of: all,
  },
  sample_rate: { shape: 'count', help: 'of the sound, in Hz', fallback: '16000', of: speech },
  ms_per_timestep: { shape: 'milliseconds', help: 'length of one row of scores', of: speechOnly },
  chunk_size: {
    shape: 'seconds',
    help: 'new sound in each step of a live stream; a multiple of ms_per_timestep',
    of: speechOnly,
  },
  left_padding_size: {
    shape: 'seconds',
    help: 'sound before a chunk; a multiple of ms_per_timestep',
    fallback: '0',
    of: speechOnly,
  },
  right_padding_size: {
    shape: 'seconds',
    help: 'sound behind a chunk; a multiple of ms_per_timestep',
    fallback: '0',
    of: speechOnly,
  },
  overlap_milliseconds: {
    shape: 'milliseconds',
    help: 'what the windows of two features share',
    fallback: '0',
    of: speechOnly,
  },
  streaming: {
    shape: 'flag',
    help: 'with the half that hears live streams (default: where the archive has one)',
    of: speechOnly,
  },
  offline: { shape: 'flag', help: 'without it', of: speechOnly },
  decoder: {
    shape: ['flashlight', 'greedy', 'pass_through'],
    help: 'flashlight: words of a lexicon, with a language model; greedy: letters as heard; pass_through: scores for callers',
    of: speechOnly,
  },
  decoding_language_model_arpa: {
    shape: 'file',
    help: 'an ARPA file, .gz or not',
    part: 'language_model',
    of: speechOnly,
  },
  decoding_lexicon: { shape: 'file', help: 'words, one a line, .gz or not', part: 'lexicon', of: speechOnly },
  decoding_vocab: {
    shape: 'file',
    help: `the same; at most ${VOCABULARY_WORDS_MAX} words`,
    part: 'lexicon',
    of: speechOnly,
  },
  blank: { shape: 'count', help: 'row of "nothing" in the scores', fallback: '0', of: speechOnly },
  word_boundary: { shape: 'count', help: 'row of the space in the scores, if it has one', of: speechOnly },
  voices: { shape: 'text', help: 'names of the speakers, separated by commas', of: speaks },
  symbols: { shape: 'text', help: 'the characters the network knows, in the order of their numbers', of: speaks },
  ssml: { shape: 'text', help: 'SSML elements the voice takes, separated by commas', of: speaks },
};

/** Other public names of options. */
export const spellings: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  decoder_type: 'decoder',
});

/** Public options without a counterpart here, and the place that decides instead. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [
    /^(endpointing|neural_vad|neural_vad_nn|vad)\.|^(endpointing_type|vad_type|vad)$/,
    'the agent finds where an utterance ends, the same way for all models',
  ],
  [/^featurizer\.|^featurizer_name$/, 'features are a network of the archive and have no options of their own'],
  [
    /^flashlight_decoder\.|^(greedy_decoder|os2s_decoder|nemo_decoder|kenlm)/,
    "the agent's decoder has its weights from its own tests",
  ],
  [
    /^decoding_language_model_(binary|fst|words)$/,
    'KenLM binaries and FSTs are not read: give decoding_language_model_arpa',
  ],
  [/^speech_hints_model$|^hotwords?_/, 'words are not boosted per request: give a lexicon and a language model'],
  [/^(acoustic_model_name|language_model_name)$/, 'models are named by --name and by the role of each network'],
  [/^padding_size$/, 'give left_padding_size and right_padding_size'],
  [/^wfst_/, 'inverse text normalisation by WFST is not offered'],
  [/^diari[sz]/, 'speakers are not distinguished'],
  [
    /^(return_separate_utterances|profane_words_file|append_space_to_transcripts|unified_acoustic_model|instance_group_count)$/,
    'it has no counterpart here',
  ],
  [
    /^nn\.(fp16_needs_obey_precision_pass|fp16_only_onnx|use_onnx_runtime|opt_batch_size|opt_length|max_length)$/,
    'deploy chooses precision and accelerator by its target',
  ],
  [
    /^(nn|am|postprocessor|preprocessor|encoder|decoder|tokenizer|language_model|intent_slot_tokenizer|chunker_model)\./,
    'single models of a pipeline are configured by deploy and its target',
  ],
];

/** Returns the reason an option is refused; undefined for an accepted one. */
export function whyNot(name: string, pipeline: PipelineName): string | undefined {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option) return option.of.includes(pipeline) ? undefined : `${name} is no option of ${pipeline}`;
  const reason = elsewhere.find(([pattern]) => pattern.test(name))?.[1];
  return reason === undefined ? `${name} is no option of ${pipeline}` : `${name} is not taken: ${reason}`;
}

/** Returns the error of a value, if any. */
export function complaintAbout(name: string, value: string): string | undefined {
  const { shape } = options[name] as Option;
  const wrong = (wanted: string) => `${name}=${value}: ${wanted} was expected`;
  if (typeof shape === 'object') return shape.includes(value) ? undefined : wrong(shape.join(', '));
  if (shape === 'flag') return /^(true|false)$/.test(value) ? undefined : wrong('true or false');
  if (shape === 'count') return /^\d{1,9}$/.test(value) ? undefined : wrong('a whole number');
  if (shape === 'language')
    return /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*(,[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)*$/.test(value)
      ? undefined
      : wrong('language tags');
  if (shape === 'seconds' || shape === 'milliseconds')
    return /^\d{0,6}(\.\d{1,6})?$/.test(value) && value !== '' ? undefined : wrong(`a number of ${shape}`);
  return value === '' ? wrong('something') : undefined;
}

/** Describes the options of a pipeline, one a line. */
export function describeOptions(pipeline: PipelineName): string {
  const own = Object.entries(options).filter(([, option]) => option.of.includes(pipeline));
  const line = ([name, { shape, help, fallback }]: [string, Option]) => {
    const value = shape === 'flag' ? '' : `=${typeof shape === 'object' ? shape.join('|') : shape.toUpperCase()}`;
    return `  --${name}${value}\n      ${help}${fallback === undefined ? '' : ` (default ${fallback})`}`;
  };
  const { parts, ways } = pipelines[pipeline];
  const made = ways.map((way) => way.join(', ')).join('; or ');
  const beside = parts.map(({ part, needed }) => (needed ? part : `${part}?`)).join(', ');
  return `${pipeline}: ${pipelines[pipeline].help}\n  networks: ${made}\n  files: ${beside || 'none'}\n\n${own.map(line).join('\n')}`;
}
