import { KiB, type Limit, MiB } from './limit.ts';

/** Importing, building and deploying models on an operator's machine. Sources come from elsewhere, so all are bounded. */
export const modelBuildLimits = {
  modelArtifactBytes: {
    value: 8 * 1024 * MiB - 1,
    unit: 'byte',
    by: 'builder',
    why: 'One artifact of an archive: the longest that the length field of a plain tar can say.',
  },
  modelUnpackedBytes: {
    value: 16 * 1024 * MiB,
    unit: 'byte',
    by: 'builder',
    why: 'Everything that one checkpoint unpacks to: a few compressed megabytes must not fill the disk.',
  },
  modelSourceEntries: {
    value: 4096,
    unit: 'count',
    by: 'builder',
    why: 'Files in one tar or zip; a checkpoint of a large network has a thousand or two.',
  },
  modelPathCharacters: {
    value: 90,
    unit: 'character',
    by: 'builder',
    why: 'Name of an artifact: what the name field of a plain tar holds, with the folder before it.',
  },
  modelYamlDepth: {
    value: 64,
    unit: 'count',
    by: 'builder',
    why: 'Structures within structures of a YAML file: nested this deep nothing is a configuration.',
  },
  modelManifestBytes: {
    value: 4 * MiB,
    unit: 'byte',
    by: 'builder',
    why: 'What an archive says of itself; it is read into memory before anything is checked.',
  },
  modelGraphBytes: {
    value: 2048 * MiB - 1,
    unit: 'byte',
    by: 'builder',
    why: 'An ONNX file without its external data: protobuf allows no more.',
  },
  modelGraphDepth: {
    value: 32,
    unit: 'count',
    by: 'builder',
    why: 'Graphs within graphs of an ONNX file; real ones have two or three.',
  },
  modelWatchMs: {
    value: 2_000,
    unit: 'ms',
    by: 'builder',
    why: 'Pause between two looks for revisions to be made: making one takes seconds.',
  },
  modelCalibrationSamples: {
    value: 1000,
    unit: 'count',
    by: 'builder',
    why: 'Requests that scales of activations are taken from (A22), spread over all that there are: more change nothing any more.',
  },
  modelCalibrationBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'builder',
    why: 'One of those requests, as large as the embedded engine takes one.',
  },
  modelPickleBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'builder',
    why: 'The pickled part of a checkpoint: names and shapes, while the numbers lie beside it.',
  },
  modelPickleMemo: {
    value: 1_000_000,
    unit: 'count',
    by: 'builder',
    why: 'Values that a pickle remembers: ten for each tensor of the largest networks.',
  },
  modelTextBytes: {
    value: 512 * MiB,
    unit: 'byte',
    by: 'builder',
    why: 'A vocabulary, lexicon, language model or configuration, unpacked: it is read as a whole.',
  },
  modelVocabularyWords: {
    value: 200_000,
    unit: 'count',
    by: 'builder',
    why: 'Words that a decoder may choose from: more make each utterance slower and rare words no likelier (M6).',
  },
  modelBatchSize: {
    value: 1024,
    unit: 'count',
    by: 'builder',
    why: 'The largest batch a deployed model may be asked for; its warm-up runs each size once.',
  },
  modelSampleRateHz: {
    value: 16_000,
    unit: 'Hz',
    by: 'builder',
    why: 'Sound of a lower rate has lost what tells consonants apart, and converting it up brings nothing back (M6).',
  },
  modelCopyBytes: {
    value: MiB,
    unit: 'byte',
    by: 'builder',
    why: 'Read at once when artifacts are copied: a network of gigabytes passes through this much memory.',
  },
  modelKeyBytes: {
    value: 4 * KiB,
    unit: 'byte',
    by: 'builder',
    why: 'A key or passphrase, also one in a file: a larger file was named by mistake.',
  },
} as const satisfies Record<string, Limit>;
