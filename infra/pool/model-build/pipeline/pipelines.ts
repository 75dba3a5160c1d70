/** A file that a pipeline needs or accepts beside its networks. */
export interface PartRule {
  readonly part: string;
  readonly needed: boolean;
  /** Name of such a file inside a checkpoint (`.nemo`), after NeMo's prefix. */
  readonly called?: RegExp;
}

export interface Pipeline {
  readonly help: string;
  /** Classes that its networks are trained as (`obj_cls`): the last part of the dotted name. */
  readonly classes: readonly string[];
  /** Networks in the order of execution, one list for each way to build it; those with `?` are optional. */
  readonly ways: readonly (readonly string[])[];
  readonly parts: readonly PartRule[];
  /** The agent's use of the pipeline. */
  readonly task: 'transcribe' | 'speak' | 'infer';
}

const vocab: PartRule = { part: 'vocab', needed: true, called: /(^|_)vocab(ulary)?\.txt$/ };

/** The eight pipelines, with their networks and files. */
export const pipelines = {
  speech_recognition: {
    help: 'sound to words',
    classes: ['EncDecCTCModel', 'EncDecCTCModelBPE', 'EncDecHybridRNNTCTCModel', 'EncDecHybridRNNTCTCBPEModel'],
    ways: [['features?', 'network', 'post?']],
    parts: [
      { part: 'vocabulary', needed: true, called: /(^|_)(tokens|vocabulary)\.txt$/ },
      { part: 'tokenizer', needed: false, called: /(^|_)tokenizer\.model$/ },
      { part: 'lexicon', needed: false },
      { part: 'language_model', needed: false },
    ],
    task: 'transcribe',
  },
  speech_synthesis: {
    help: 'text to sound',
    classes: ['FastPitchModel', 'HifiGanModel', 'RadTTSModel'],
    ways: [['spectrogram', 'vocoder'], ['network']],
    parts: [
      { part: 'dictionary', needed: false, called: /(^|_)cmudict[\w.-]*$/ },
      { part: 'heteronyms', needed: false, called: /(^|_)heteronyms[\w.-]*$/ },
    ],
    task: 'speak',
  },
  qa: {
    help: 'question and text to the place of the answer',
    classes: ['QAModel'],
    ways: [['network']],
    parts: [vocab],
    task: 'infer',
  },
  token_classification: {
    help: 'a label for each token',
    classes: ['TokenClassificationModel'],
    ways: [['network']],
    parts: [{ part: 'class_labels', needed: true, called: /(^|_)(class_)?label(_id)?s?[\w]*\.csv$/ }, vocab],
    task: 'infer',
  },
  intent_slot: {
    help: 'an intent, and slots for each token',
    classes: ['IntentSlotClassificationModel'],
    ways: [['network']],
    parts: [
      { part: 'intent_labels', needed: true, called: /(^|_)intent_labels\.csv$|(^|_)dict\.intents\.csv$/ },
      { part: 'slot_labels', needed: true, called: /(^|_)slot_labels\.csv$|(^|_)dict\.slots\.csv$/ },
      vocab,
    ],
    task: 'infer',
  },
  text_classification: {
    help: 'a label for a text',
    classes: ['TextClassificationModel'],
    ways: [['network']],
    parts: [{ part: 'class_labels', needed: true, called: /(^|_)(class_)?label(_id)?s?[\w]*\.csv$/ }, vocab],
    task: 'infer',
  },
  punctuation: {
    help: 'punctuation and capital letters for each token',
    classes: ['PunctuationCapitalizationModel'],
    ways: [['network']],
    parts: [
      { part: 'punct_labels', needed: true, called: /(^|_)punct_label[\w]*\.csv$/ },
      { part: 'capit_labels', needed: true, called: /(^|_)capit_label[\w]*\.csv$/ },
      vocab,
    ],
    task: 'infer',
  },
  translation: {
    help: 'text of one language to text of another',
    classes: ['MTEncDecModel', 'MegatronNMTModel'],
    ways: [['encoder', 'decoder', 'log_softmax']],
    parts: [
      { part: 'encoder_tokenizer', needed: true, called: /(^|_)(encoder_)?tokenizer(\.encoder)?[\w.]*\.model$/ },
      { part: 'decoder_tokenizer', needed: true, called: /(^|_)(decoder_)?tokenizer(\.decoder)?[\w.]*\.model$/ },
    ],
    task: 'infer',
  },
} as const satisfies Record<string, Pipeline>;

export type PipelineName = keyof typeof pipelines;

export const isPipeline = (name: string): name is PipelineName => Object.hasOwn(pipelines, name);

/** Returns the pipeline of a class. */
export const pipelineOf = (classes: readonly string[]): PipelineName | undefined =>
  (Object.keys(pipelines) as PipelineName[]).find((name) =>
    (pipelines[name].classes as readonly string[]).some((one) => classes.includes(one)),
  );
