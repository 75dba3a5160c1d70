import type { ServedModel } from './desk.ts';
import type { Log } from './log.ts';
import { isSpeechModel, readRepository } from './models.ts';
import { createRecognisers } from './recogniser.ts';
import type { KnownDigests } from './revision.ts';

/**
 * Reads the models of a repository that are whole, now and again: what has not changed is not loaded a second time. A
 * broken model must not take the others down with it; the log says which and why.
 */
export function createModelSource(repository: string, now: () => number, log: Log): () => Promise<ServedModel[]> {
  const digests: KnownDigests = new Map();
  let models: ServedModel[] = [];
  return async () => {
    const onBroken = (model: string, detail: string) => log('model-broken', { model, detail });
    const recogniserOf = createRecognisers();
    const next: ServedModel[] = [];
    for (const model of await readRepository(repository, now(), onBroken, digests)) {
      const { name, revision } = model.description;
      const same = models.find(({ description }) => description.name === name && description.revision === revision);
      try {
        const recogniser = isSpeechModel(model) && !same ? await recogniserOf(model) : undefined;
        const { description, live } = model;
        next.push(same ?? { description, ...(recogniser && { recogniser }), ...(live && { live }) });
      } catch (error) {
        onBroken(name, error instanceof Error ? error.message : 'its decoder does not load');
      }
    }
    models = next;
    return models;
  };
}
