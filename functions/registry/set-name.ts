// Names of the fleet and its tenants for models. A move of a name is an entry of their log.

import type { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import type { NameMove, nameRow } from '../../shared/registry/contract.ts';
import { keyOfName, NAMES_LOG, NAMES_MAX, type NamedModel } from '../../shared/registry/names.ts';
import { type EntryDraft, newRegistry, type Registry } from '../../shared/registry/registry.ts';
import { modelName } from '../../shared/registry/revision.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { afterEntry } from './after-entry.ts';
import type { ModelContext } from './model-context.ts';
import { append, readModel } from './stored-model.ts';

export async function listNames(context: Pick<ModelContext, 'rows'>): Promise<NamedModel[]> {
  const { names = {} } = (await readModel(context, NAMES_LOG)).registry;
  return Object.keys(names)
    .sort()
    .flatMap((key) => names[key] ?? []);
}

/** Moves a name, or several, and publishes them together. Stops at the first move that is refused. */
export async function setName(
  context: ModelContext,
  { others = [], ...move }: NameMove,
): Promise<Result<z.infer<typeof nameRow>>> {
  const { name, tenant } = move;
  let moved = await moveName(context, move);
  if (!moved.ok) return moved;
  for (const other of others) {
    moved = await moveName(context, { ...move, name: other });
    if (!moved.ok) break;
  }
  const published = await afterEntry(context, NAMES_LOG);
  if (!moved.ok) return moved;
  if (!published.ok) return published;
  const { names, at } = moved.value;
  return ok(names?.[keyOfName(name, tenant)] ?? { name, ...(tenant && { tenant }), since: at });
}

/** Returns the registry of names after a move. */
async function moveName(context: ModelContext, move: Omit<NameMove, 'others'>): Promise<Result<Registry>> {
  const { name, model } = move;
  const done = await append(context, NAMES_LOG, async (known) => {
    const own = await readOwn(context, name);
    const target = model === undefined ? undefined : (await readModel(context, model)).registry;
    const decided = decideName(known, move, { own, target });
    return decided.ok ? ok({ draft: decided.value, answer: undefined }) : decided;
  });
  return done.ok ? ok(done.value.registry) : done;
}

/** Returns the registry of the model with the name itself; an empty one where no model can have it. */
async function readOwn(context: Pick<ModelContext, 'rows'>, name: string): Promise<Registry> {
  return modelName.safeParse(name).success ? (await readModel(context, name)).registry : newRegistry(name);
}

interface Registries {
  /** Registry of the model that has the name itself. */
  readonly own: Registry;
  /** Registry of the model that gets the name. */
  readonly target: Registry | undefined;
}

/**
 * Decides a move of a name. `undefined`: the name has that model already. A registered model needs a revision that has
 * passed every gate, as the alias `stable` does; the edge refuses models that no agent serves.
 */
export function decideName(
  known: Registry,
  move: NameMove,
  { own, target }: Registries,
): Result<EntryDraft | undefined> {
  const { name, tenant, model, from, reason } = move;
  const names = known.names ?? {};
  const key = keyOfName(name, tenant);
  const named = Object.hasOwn(names, key) ? names[key]?.model : undefined;
  if (named === model) return ok(undefined);
  if (named !== from) return no(refuse('alias_moved', { alias: name, revision: named ?? 'nothing' }));
  if (model !== undefined) {
    const problem = problemOf({ own, target });
    if (problem !== undefined) return no(refuse('gate_closed', { rule: problem }));
    if (named === undefined && Object.keys(names).length >= NAMES_MAX) {
      return no(refuse('gate_closed', { rule: `there are at most ${NAMES_MAX} names` }));
    }
  }
  return ok({
    type: 'name',
    name,
    ...(tenant !== undefined && { tenant }),
    ...(named !== undefined && { from: named }),
    ...(model !== undefined && { to: model }),
    ...(reason !== undefined && { reason }),
  });
}

function problemOf({ own, target }: Registries): string | undefined {
  if (Object.keys(own.revisions).length > 0) return 'a registered model has that name';
  const revisions = Object.values(target?.revisions ?? {});
  if (revisions.length > 0 && !revisions.some(({ standing }) => standing.stage === 'full')) {
    return 'no revision of the model has passed the gates';
  }
  return undefined;
}
