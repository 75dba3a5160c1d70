import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { type ModelDescription, modelDescription } from '../../../../shared/pool/description.ts';
import { followSteps, readConfig } from '../../models/config/read-parts.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { UTTERANCE_S } from '../settings/limits.ts';
import { type SpeakParameters, speakParameters } from '../tts/parameters.ts';
import type { LiveModel } from './live-model.ts';
import { digestRevision, type FoundRevision, type KnownDigests, stampRevision } from './revision.ts';
import { type TextParameters, textOutputOf, textParameters } from './text-parameters.ts';

/**
 * Required `parameters` of an ensemble that the agent serves. Paths are relative to the ensemble's folder.
 */
const parameters = z.object({
  task: z.literal('transcribe').default('transcribe'),
  /** BCP 47 tags, separated by commas. */
  language: z.string().min(2),
  precision: z.enum(['fp32', 'fp16', 'int8']).default('fp32'),
  stage: z.enum(['develop-verify', 'grey', 'canary', 'full', 'retired']).default('full'),
  hears: modelDescription.shape.hears,
  family: modelDescription.shape.family,
  sample_rate: z.literal('16000'),
  /** Length of one frame of log probabilities. */
  frame_milliseconds: z.coerce.number().positive(),
  blank: z.coerce.number().int().nonnegative().default(0),
  /** By default the token `<space>` or `|`, if there is one. */
  word_boundary: z.coerce.number().int().nonnegative().optional(),
  vocabulary: z.string().min(1),
  lexicon: z.string().min(1).optional(),
  language_model: z.string().min(1).optional(),
  /** The ensemble that hears live streams: the same network with a memory. Not served under its own name. */
  stream_model: z.string().min(1).optional(),
});

/** `parameters` of the streaming ensemble (A4). */
const streamParameters = z.object({
  window_milliseconds: z.coerce.number().positive().default(300),
  hop_milliseconds: z.coerce.number().positive().default(100),
});

export type ModelParameters = z.infer<typeof parameters>;

/** Parameters of a model, ensemble or not, that only computes: `task` "infer". */
const inferParameters = z.object({
  task: z.literal('infer'),
  /** `zxx` when its tensors are not speech, so that no list of languages forbids it. */
  language: parameters.shape.language.default('und'),
  precision: parameters.shape.precision,
  stage: parameters.shape.stage,
});

/** Parameters of a model that tells languages apart: `task` "detect". */
const detectParameters = z.object({
  task: z.literal('detect'),
  /** Languages in the order of its `LOG_PROBS`: BCP 47 tags, separated by commas. */
  languages: z.string().min(2),
  precision: parameters.shape.precision,
  stage: parameters.shape.stage,
});

/** A model in the repository that the agent can serve. */
export interface RepositoryModel {
  readonly folder: string;
  readonly description: ModelDescription;
  /** Its name at the engine. */
  readonly engineModel: string;
  /** Files of its revision; absent where the caller knows them. */
  readonly files?: FoundRevision['files'];
  /** Reports whether its files are those of its revision, by size, times and inode. */
  readonly unchanged: () => Promise<boolean>;
  /** How it recognises; absent when it only computes. */
  readonly parameters?: ModelParameters | TextParameters;
  readonly live?: LiveModel;
  /** How it speaks; absent when it is no voice. */
  readonly speech?: SpeakParameters;
}

/** One that recognises speech. */
export type SpeechModel = RepositoryModel & { readonly parameters: ModelParameters | TextParameters };

export const isSpeechModel = (model: RepositoryModel): model is SpeechModel => model.parameters !== undefined;

/** Reads the agent's parameters of a model. Throws when one is wrong. */
function readParameters<T extends z.ZodType>(schema: T, given: Readonly<Record<string, string>>): z.infer<T> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map((issue) => `parameter ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(wrong.join('; '));
}

const textsOf = (config: ModelConfig) =>
  Object.fromEntries(Object.entries(config.parameters).map(([key, value]) => [key, value.string_value]));

/** The live half of a model. Rejects when it cannot be served. */
async function readLive(repository: string, model: string): Promise<LiveModel> {
  const config = await readConfig(path.join(repository, model));
  if (!config) throw new Error(`parameter stream_model: there is no ${model}`);
  const read = readParameters(streamParameters, textsOf(config));
  const [window, hop] = [read.window_milliseconds, read.hop_milliseconds];
  if (hop > window || window > UTTERANCE_S * 1_000) {
    throw new Error(`${model}: a hop is at most a window, and that at most an utterance`);
  }
  const samples = (milliseconds: number) => Math.round((milliseconds / 1_000) * MODEL_RATE);
  return { model, windowSamples: samples(window), hopSamples: samples(hop) };
}

/** Reads a model that carries parameters of the agent, `undefined` for another. Rejects a broken one. */
export async function readModel(scan: RepositoryScan, folder: string): Promise<RepositoryModel | undefined> {
  const config = await readConfig(path.join(scan.repository, folder));
  if (!config) return undefined;
  const given = textsOf(config);
  if (given.task === 'infer') return makeModel(scan, [folder], [], readParameters(inferParameters, given));
  if (given.task === 'detect') {
    const { languages: language, ...read } = readParameters(detectParameters, given);
    return makeModel(scan, [folder], [], { ...read, language });
  }
  if (given.task === 'speak') {
    const speech = readParameters(speakParameters, given);
    if (speech.ssml.includes('prosody') && !config.input.some(({ name }) => name === 'PITCH'))
      throw new Error('parameter ssml: prosody needs an input PITCH');
    return { ...(await makeModel(scan, [folder], [], speech)), speech };
  }
  // The live half of another one.
  if (Object.keys(streamParameters.shape).some((key) => Object.hasOwn(given, key))) return undefined;
  if (textOutputOf(config)) return readTextModel(scan, folder, config);
  if (!config.ensemble_scheduling || !Object.keys(parameters.shape).some((key) => Object.hasOwn(given, key)))
    return undefined;
  const read = readParameters(parameters, given);
  const named = [read.vocabulary, read.lexicon, read.language_model].filter((file) => file !== undefined);
  const live = read.stream_model === undefined ? undefined : await readLive(scan.repository, read.stream_model);
  const model = await makeModel(scan, live ? [folder, live.model] : [folder], named, read);
  return { ...model, parameters: read, ...(live && { live }) };
}

/** A model whose output is text; it hears live streams itself, by decoding them again. */
async function readTextModel(scan: RepositoryScan, folder: string, config: ModelConfig): Promise<RepositoryModel> {
  const read = readParameters(textParameters, textsOf(config));
  if (textOutputOf(config) === 'TOKENS' && read.vocabulary === undefined)
    throw new Error('parameter vocabulary: TOKENS needs a token file');
  const made = await makeModel(scan, [folder], read.vocabulary === undefined ? [] : [read.vocabulary], read);
  const [inputs, outputs] = [config.input, config.output].map((tensors) => tensors.map(({ name }) => name));
  return {
    ...made,
    parameters: { ...read, inputs: inputs ?? [], outputs: outputs ?? [] },
    ...liveOfText(folder, read),
  };
}

/** Returns the live half of a text model: the model itself, unless it takes recordings only. */
export function liveOfText(
  model: string,
  { redecode_milliseconds: hop }: z.infer<typeof textParameters>,
): { live?: LiveModel } {
  if (hop === 0) return {};
  const hopSamples = Math.round((hop / 1_000) * MODEL_RATE);
  return { live: { model, windowSamples: UTTERANCE_S * MODEL_RATE, hopSamples } };
}

/** A revision that may not be served, and the reason. */
class RefusedRevision extends Error {
  readonly revision: string;
  constructor(revision: string, reason: string) {
    super(reason);
    this.revision = revision;
  }
}

/** Parameters of a model of any task. */
type ReadParameters =
  | ModelParameters
  | z.infer<typeof textParameters>
  | SpeakParameters
  | z.infer<typeof inferParameters>
  | (Omit<z.infer<typeof detectParameters>, 'languages'> & { readonly language: string });

/** Task in the description: readers of an earlier version know no `detect`. */
const describedTask = (task: ReadParameters['task']): ModelDescription['task'] =>
  task === 'speak' ? 'synthesize' : task === 'detect' ? 'infer' : task;

/** Makes a model of its own folder, the first, and of others that it names. */
async function makeModel(
  scan: RepositoryScan,
  [folder, ...others]: readonly [string, ...string[]],
  named: readonly string[],
  read: ReadParameters,
): Promise<RepositoryModel> {
  const { task, language, precision, stage } = read;
  const { repository, now } = scan;
  const { name = folder, ...identity } = scan.known ?? (await identify(scan, [folder, ...others], named));
  return {
    folder: path.join(repository, folder),
    engineModel: folder,
    description: {
      name,
      task: describedTask(task),
      languages: language.split(',').map((tag) => tag.trim()),
      revision: identity.revision,
      precision,
      stage,
      loaded: Math.floor(now / 1_000),
      ...('hears' in read && read.hears && { hears: read.hears }),
      ...('family' in read && read.family !== undefined && { family: read.family }),
      ...(task === 'detect' && { detects: true as const }),
      ...('voices' in read && { voices: read.voices, ssml: read.ssml }),
    },
    ...(identity.files && { files: identity.files }),
    unchanged: identity.unchanged,
  };
}

/** Revision of a model, and how its files are compared with it. */
interface Identity {
  /** Name of the model where it is not that of its folder. */
  readonly name?: string;
  readonly revision: string;
  readonly files?: FoundRevision['files'];
  readonly unchanged: () => Promise<boolean>;
}

/** Reads the files of a model, which may have to be signed. */
async function identify(
  { repository, digests, enter }: RepositoryScan,
  folders: readonly [string, ...string[]],
  named: readonly string[],
): Promise<Identity> {
  const files = named.map((file) => path.join(repository, folders[0], file));
  const parts = await followSteps(repository, folders);
  // Taken before the files are read: a change during the read counts as one.
  const stamp = await stampRevision(repository, parts, files);
  const found = await digestRevision(repository, parts, files, digests);
  const refused = await enter?.(folders[0], found);
  if (refused !== undefined) throw new RefusedRevision(found.revision, refused);
  const unchanged = () =>
    stampRevision(repository, parts, files).then(
      (now) => now === stamp,
      () => false,
    );
  return { revision: found.revision, files: found.files, unchanged };
}

interface RepositoryScan {
  readonly repository: string;
  /** Epoch ms. */
  readonly now: number;
  readonly digests?: KnownDigests;
  readonly enter?: Enter | undefined;
  /** Identity of a revision whose files were verified before. */
  readonly known?: Identity;
}

/** Asked of each revision whose files are here: why it is not let in, `undefined` when it is. */
export type Enter = (model: string, found: FoundRevision) => Promise<string | undefined>;

interface ReadOptions {
  /** Models to read; absent: all. */
  readonly names?: readonly string[] | undefined;
  /** Epoch ms. */
  readonly now: number;
  /**
   * Reports each model that cannot be served and each folder with an unreadable configuration, with the
   * reason. `refused`: the revision that `enter` refuses.
   */
  readonly onBroken: (model: string, detail: string, refused?: string) => void;
  readonly digests?: KnownDigests;
  readonly enter?: Enter | undefined;
}

/**
 * Reads the models of a repository that carry parameters of the agent, sorted by name; others are skipped. A
 * broken model does not keep the others from being served.
 */
export async function readRepository(
  repository: string,
  { names, now, onBroken, digests = new Map(), enter }: ReadOptions,
): Promise<RepositoryModel[]> {
  const entries = await readdir(repository, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  for (const name of names ?? []) if (!folders.includes(name)) onBroken(name, 'it is not in the repository');
  const models: RepositoryModel[] = [];
  for (const folder of folders.filter((one) => names?.includes(one) ?? true).sort()) {
    const model = await readModel({ repository, now, digests, enter }, folder).catch((error: unknown) => {
      const refused = error instanceof RefusedRevision ? error.revision : undefined;
      onBroken(folder, error instanceof Error ? error.message : 'it cannot be read', refused);
      return undefined;
    });
    if (model) models.push(model);
  }
  return models;
}
