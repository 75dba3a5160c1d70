import type { ServedModel } from './desk.ts';
import type { Dispatcher } from './dispatch.ts';
import type { Log } from './log.ts';
import { isSpeechModel, readRepository } from './models.ts';
import { createRecognisers } from './recogniser.ts';
import type { KnownDigests } from './revision.ts';
import { createSpeaker } from './speak/create-speaker.ts';

/**
 * Reads the models of a repository that are whole, now and again: what has not changed is not loaded a second time. A
 * broken model must not take the others down with it; the log says which and why. `run` is the way to the engine for those
 * that speak.
 */
export function createModelSource(
  repository: string,
  now: () => number,
  log: Log,
  run: Dispatcher['run'],
): () => Promise<ServedModel[]> {
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
        const { description, live, speech } = model;
        const speaker = speech && createSpeaker({ model: name, parameters: speech, run, now });
        const able = { ...(recogniser && { recogniser }), ...(live && { live }), ...(speaker && { speaker }) };
        next.push(same ?? { description, ...able });
      } catch (error) {
        onBroken(name, error instanceof Error ? error.message : 'its decoder does not load');
      }
    }
    models = next;
    return models;
  };
}
