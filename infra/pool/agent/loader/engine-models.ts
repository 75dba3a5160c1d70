// The models that an engine has loaded, compared with the revisions that the agent serves.
import type { ModelState } from '../engine/engine.ts';
import { engineModelOf, type ServedModel } from '../models/served-model.ts';
import type { EngineFolder } from './engine-folder.ts';
import { isEngineName } from './engine-names.ts';
import { loadNames } from './load.ts';
import type { Resident } from './resident.ts';

type States = ReadonlyMap<string, ModelState>;

/** Reports whether the engine has a model, or is loading it. */
export function isAtEngine(states: States, model: ServedModel): boolean {
  const state = states.get(engineModelOf(model))?.is;
  return state === 'ready' || state === 'loading';
}

/** Returns the models of the engine's repository that are ready and that no served revision uses. */
export function findUnused(
  states: States,
  residents: Iterable<Resident>,
  folder: Pick<EngineFolder, 'find'>,
): string[] {
  const used = new Set(
    [...residents].flatMap(({ served, known }) =>
      served ? [...loadNames(served), ...(folder.find(known.digest)?.names.values() ?? [])] : [],
    ),
  );
  return [...states].flatMap(([name, { is }]) => (is === 'ready' && isEngineName(name) && !used.has(name) ? name : []));
}
