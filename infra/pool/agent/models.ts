import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import { parseText } from '../models/config/parse-text.ts';
import type { ModelConfig } from '../models/config/schema.ts';
import { digestRevision, type KnownDigests } from './revision.ts';

/** What an ensemble's `parameters` must say for the agent to serve it. Paths are relative to the ensemble's folder. */
const parameters = z.object({
  task: z.literal('transcribe').default('transcribe'),
  /** BCP 47 tags, separated by commas. */
  language: z.string().min(2),
  precision: z.enum(['fp32', 'fp16', 'int8']).default('fp32'),
  stage: z.enum(['develop-verify', 'grey', 'canary', 'full', 'retired']).default('full'),
  sample_rate: z.literal('16000'),
  /** Length of one frame of log probabilities. */
  frame_milliseconds: z.coerce.number().positive(),
  blank: z.coerce.number().int().nonnegative().default(0),
  word_boundary: z.coerce.number().int().nonnegative().default(1),
  vocabulary: z.string().min(1),
  lexicon: z.string().min(1).optional(),
  language_model: z.string().min(1).optional(),
});

export type ModelParameters = z.infer<typeof parameters>;

/** An ensemble in the repository that the agent can serve. */
export interface RepositoryModel {
  readonly folder: string;
  readonly description: ModelDescription;
  readonly parameters: ModelParameters;
}

const CONFIG = 'config.pbtxt';

/** What stands in the folder, `undefined` when it is no model. Rejects when it cannot be understood. */
async function readConfig(folder: string): Promise<ModelConfig | undefined> {
  const text = await readFile(path.join(folder, CONFIG), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = parseText(text);
  if (!parsed.ok) throw new Error(`${CONFIG}: ${parsed.refusal.reason}`);
  return parsed.value;
}

/** An ensemble for us, `undefined` when it is none. Rejects when it wants to be one and cannot. */
async function readEnsemble({ repository, now, digests }: Place, folder: string): Promise<RepositoryModel | undefined> {
  const config = await readConfig(path.join(repository, folder));
  if (!config?.ensemble_scheduling) return undefined;
  const given = Object.fromEntries(Object.entries(config.parameters).map(([key, value]) => [key, value.string_value]));
  if (!Object.keys(parameters.shape).some((key) => Object.hasOwn(given, key))) return undefined;
  const parsed = parameters.safeParse(given);
  if (!parsed.success) {
    const wrong = parsed.error.issues.map((issue) => `parameter ${issue.path.join('.')}: ${issue.message}`);
    throw new Error(wrong.join('; '));
  }
  const steps = config.ensemble_scheduling.step.map((step) => step.model_name);
  const { vocabulary, lexicon, language_model: languageModel } = parsed.data;
  const named = [vocabulary, lexicon, languageModel].filter((file) => file !== undefined);
  const files = named.map((file) => path.join(repository, folder, file));
  return {
    folder: path.join(repository, folder),
    parameters: parsed.data,
    description: {
      name: folder,
      task: parsed.data.task,
      languages: parsed.data.language.split(',').map((tag) => tag.trim()),
      revision: await digestRevision(repository, [...new Set([folder, ...steps])], files, digests),
      precision: parsed.data.precision,
      stage: parsed.data.stage,
      loaded: Math.floor(now / 1_000),
    },
  };
}

interface Place {
  readonly repository: string;
  readonly now: number;
  readonly digests: KnownDigests;
}

/**
 * The ensembles of a model repository that carry parameters of the agent, sorted by name; others are not for us.
 * `onBroken` hears of each that carries some and cannot be served, and why, and of each folder whose configuration
 * nobody can read: the others are served.
 */
export async function readRepository(
  repository: string,
  now: number,
  onBroken: (model: string, detail: string) => void,
  digests: KnownDigests = new Map(),
): Promise<RepositoryModel[]> {
  const entries = await readdir(repository, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const models: RepositoryModel[] = [];
  for (const folder of folders.sort()) {
    const model = await readEnsemble({ repository, now, digests }, folder).catch((error: unknown) => {
      onBroken(folder, error instanceof Error ? error.message : 'it cannot be read');
      return undefined;
    });
    if (model) models.push(model);
  }
  return models;
}
