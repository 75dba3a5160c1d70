import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import { parseText } from '../models/config/parse-text.ts';
import type { ModelConfig } from '../models/config/schema.ts';

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

async function readConfig(folder: string): Promise<ModelConfig | undefined> {
  const text = await readFile(path.join(folder, CONFIG), 'utf8').catch(() => undefined);
  const parsed = text === undefined ? undefined : parseText(text);
  return parsed?.ok ? parsed.value : undefined;
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/**
 * Digest of everything that makes a revision: SHA-256 over the lines `<sha256 of file> <path>` of all files of the
 * ensemble, of the models it is composed of and of the files it names, sorted by path inside the repository.
 */
export async function digestRevision(repository: string, folders: readonly string[], files: readonly string[]) {
  const own = await Promise.all(folders.map((folder) => listFiles(path.join(repository, folder))));
  const all = new Set([...own.flat(), ...files].map((file) => path.resolve(file)));
  const lines: string[] = [];
  for (const file of [...all].sort()) {
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    lines.push(`${digest} ${path.relative(repository, file).split(path.sep).join('/')}`);
  }
  lines.sort((a, b) => (a.slice(65) < b.slice(65) ? -1 : 1));
  return `sha256:${createHash('sha256').update(lines.join('\n')).digest('hex')}`;
}

async function readEnsemble(repository: string, folder: string, now: number): Promise<RepositoryModel | undefined> {
  const config = await readConfig(path.join(repository, folder));
  if (!config?.ensemble_scheduling) return undefined;
  const given = Object.entries(config.parameters).map(([key, { string_value }]) => [key, string_value]);
  const parsed = parameters.safeParse(Object.fromEntries(given));
  if (!parsed.success) return undefined;
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
      revision: await digestRevision(repository, [...new Set([folder, ...steps])], files),
      precision: parsed.data.precision,
      stage: parsed.data.stage,
      loaded: Math.floor(now / 1_000),
    },
  };
}

/**
 * The ensembles of a model repository that carry the agent's parameters, sorted by name; others are not for us.
 * `onBroken` hears of one that names a file which is not there: it is not served, the others are.
 */
export async function readRepository(
  repository: string,
  now: number,
  onBroken: (model: string) => void,
): Promise<RepositoryModel[]> {
  const entries = await readdir(repository, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const models: RepositoryModel[] = [];
  for (const folder of folders.sort()) {
    const model = await readEnsemble(repository, folder, now).catch(() => {
      onBroken(folder);
      return undefined;
    });
    if (model) models.push(model);
  }
  return models;
}
