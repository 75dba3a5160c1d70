import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Engine } from '../engine/engine.ts';
import { engineModelOf, type ServedModel } from '../models/served-model.ts';
import type { EngineFolder, PlacedRevision } from './engine-folder.ts';
import type { KnownRevision } from './known-revision.ts';
import { warmUp } from './warm-up.ts';

/** Longest load of a model and its streaming model. */
const LOAD_MS = 1_200_000;

/** Phases of a load, ms: the copy of its files, the engine's initialisation, and the first inference. */
export interface LoadPhases {
  readonly copyMs: number;
  readonly loadMs: number;
  readonly warmUpMs: number;
}

export interface LoadedRevision {
  readonly model: ServedModel;
  readonly phases: LoadPhases;
  /** Bytes; `undefined` where the engine does not say. */
  readonly memory: number | undefined;
}

export interface LoadParts {
  readonly engine: Engine;
  readonly folder: EngineFolder;
  readonly serve: (known: KnownRevision, placed: PlacedRevision) => Promise<ServedModel>;
  /** Names at the engine that other revisions use. */
  readonly inUse: ReadonlySet<string>;
  readonly now: () => number;
}

/** Loads a revision from verified copies of its files and warms it up. A failed one is unloaded and its copies deleted. */
export async function loadIntoEngine(
  { engine, folder, serve, inUse, now }: LoadParts,
  known: KnownRevision,
): Promise<Result<LoadedRevision, string>> {
  const signal = AbortSignal.timeout(LOAD_MS);
  const began = now();
  const before = folder.find(known.digest);
  const whole = before && (await before.unchanged()) ? ok(before) : await folder.place(known, known.source);
  if (!whole.ok) return no(`${whole.refusal.reason}: ${whole.refusal.detail}`);
  const placed = whole.value;
  const copied = now();
  const made = await serve(known, placed).then(ok, (error: unknown) =>
    no(error instanceof Error ? error.message : 'it cannot be read'),
  );
  if (!made.ok) {
    await folder.remove(known.digest);
    return made;
  }
  const model = made.value;
  const reason = await loadAll(engine, model, signal);
  const loaded = now();
  // The engine read the files between the two looks.
  const swapped =
    reason === undefined && !(await placed.unchanged()) ? 'its files changed while it was loaded' : undefined;
  const failure = reason ?? swapped ?? (await warmUp(engine, model));
  if (failure !== undefined) {
    await unloadFromEngine(engine, model, inUse);
    await folder.remove(known.digest);
    return no(failure);
  }
  const phases = { copyMs: copied - began, loadMs: loaded - copied, warmUpMs: now() - loaded };
  const sizes = await Promise.all(loadNames(model).map((one) => engine.memory(one, signal)));
  const memory = sizes.every((size) => size !== undefined)
    ? sizes.reduce((sum, { bytes }) => sum + bytes, 0)
    : undefined;
  return ok({ model, phases, memory });
}

/** Returns the names at the engine that a model is loaded by. A text model hears streams under its own name. */
export const loadNames = (model: ServedModel): string[] => [
  ...new Set([engineModelOf(model), ...(model.live ? [model.live.model] : [])]),
];

async function loadAll(engine: Engine, model: ServedModel, signal: AbortSignal): Promise<string | undefined> {
  for (const name of loadNames(model)) {
    const loaded = await engine.load(name, signal);
    if (!loaded.ok) return loaded.refusal.detail ?? loaded.refusal.reason;
  }
  return undefined;
}

/** Unloads what no other revision uses of a model and its streaming model; returns the reason of a failure. */
export async function unloadFromEngine(
  engine: Engine,
  model: ServedModel,
  inUse: ReadonlySet<string>,
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(LOAD_MS);
  let reason: string | undefined;
  for (const name of loadNames(model).filter((one) => !inUse.has(one))) {
    const unloaded = await engine.unload(name, signal);
    if (!unloaded.ok) reason ??= unloaded.refusal.detail ?? unloaded.refusal.reason;
  }
  return reason;
}
