import type { SignerKey } from '../../../../shared/registry/signature-key.ts';
import type { Recogniser } from '../asr/segment.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import type { AgentEvent } from '../identity/record.ts';
import type { Log } from '../telemetry/log.ts';
import { createSpeaker } from '../tts/create-speaker.ts';
import { type Enter, isSpeechModel, type RepositoryModel, readRepository } from './models.ts';
import { createRecognisers } from './recogniser.ts';
import type { KnownDigests } from './revision.ts';
import type { ServedModel } from './served-model.ts';
import { createVerifyEntry, ruleOf } from './verify-entry.ts';

export interface Entry {
  readonly agent: string;
  readonly signers: readonly SignerKey[];
  /** Whether unsigned revisions are refused as well. */
  readonly strict: boolean;
  readonly record: (event: AgentEvent) => void;
}

export interface ModelSourceOptions {
  readonly repository: string;
  /** Models of it that are read; absent: all. */
  readonly names?: readonly string[] | undefined;
  readonly now: () => number;
  readonly log: Log;
  /** Runs the inference of voices. */
  readonly run: Dispatcher['run'];
  /** Absent: signatures are not verified. */
  readonly entry?: Entry | undefined;
}

/**
 * Returns a function that reads the models of a repository. A broken model is logged and left out. With `entry`, a
 * revision is read only if its signature holds, and a refused one is audited.
 */
export function createRepositoryReader({ repository, names, now, log, entry }: Omit<ModelSourceOptions, 'run'>) {
  const digests: KnownDigests = new Map();
  const enter = entry && createEnter(repository, entry, log);
  /** Revision of each model whose refusal was audited. */
  const refused = new Map<string, string>();
  /** Last logged line of each model that is not served. */
  const logged = new Map<string, string>();

  function onBroken(model: string, detail: string, revision?: string) {
    const line = `${revision} ${detail}`;
    if (logged.get(model) === line) return;
    logged.set(model, line);
    log(revision === undefined ? 'model-broken' : 'model-refused', { model, detail, ...(revision && { revision }) });
    if (!entry || revision === undefined || refused.get(model) === revision) return;
    refused.set(model, revision);
    entry.record({ type: 'model.revision', agent: entry.agent, action: 'refused', model, revision });
  }

  return {
    read: () => readRepository(repository, { names, now: now(), onBroken, digests, enter }),
    onBroken,
    onGood: (model: string) => void logged.delete(model),
  };
}

/** Returns a function that reads and serves the models of a repository; an unchanged model is not loaded again. */
export function createModelSource(options: ModelSourceOptions): () => Promise<ServedModel[]> {
  const reader = createRepositoryReader(options);
  let models: ServedModel[] = [];
  return async () => {
    const recogniserOf = createRecognisers();
    const next: ServedModel[] = [];
    for (const model of await reader.read()) {
      const { name, revision } = model.description;
      const same = models.find(({ description }) => description.name === name && description.revision === revision);
      try {
        const recogniser = isSpeechModel(model) && !same ? await recogniserOf(model) : undefined;
        next.push({
          ...(same ?? serve(model, recogniser, { run: options.run, now: options.now })),
          unchanged: model.unchanged,
        });
        reader.onGood(name);
      } catch (error) {
        reader.onBroken(name, error instanceof Error ? error.message : 'its decoder does not load');
      }
    }
    models = next;
    return models;
  };
}

/** Joins a model of the repository with what recognises or speaks for it. */
export function serve(
  model: RepositoryModel,
  recogniser: Recogniser | undefined,
  voices?: Pick<ModelSourceOptions, 'run' | 'now'>,
): ServedModel {
  const { description, engineModel, folder, live, speech } = model;
  const speaker = speech && voices && createSpeaker({ model: engineModel, parameters: speech, ...voices });
  return {
    ...{ description, engineModel, unchanged: model.unchanged },
    ...(recogniser && { recogniser }),
    ...(isSpeechModel(model) && { source: { description, engineModel, folder, parameters: model.parameters } }),
    ...(live && { live }),
    ...(speaker && { speaker }),
  };
}

function createEnter(repository: string, { signers, strict }: Entry, log: Log): Enter {
  const verify = createVerifyEntry(repository, signers);
  const unsigned = new Set<string>();
  return async (model, found) => {
    const verified = await verify(model, found);
    if (!verified.ok) return explain(ruleOf(verified.refusal));
    if (verified.value !== undefined) return undefined;
    if (strict) return 'it is not signed';
    const { revision } = found;
    if (!unsigned.has(revision)) log('model-unsigned', { model, revision });
    unsigned.add(revision);
    return undefined;
  };
}

/** Adds advice about compiled Python: the engine runs it like the model's own files, so it must be signed, or absent. */
const explain = (refused: string): string =>
  refused.includes('__pycache__/')
    ? `${refused}: Python writes such files beside a model unless the server's repository is mounted read-only`
    : refused;
