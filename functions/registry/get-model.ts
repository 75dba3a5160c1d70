// Models as operators see them, now or as they were.
import type { AliasRow, ModelState, RevisionRow } from '../../shared/registry/contract.ts';
import { applyEntry, newRegistry, type Registry } from '../../shared/registry/registry.ts';
import { MODEL_LOG_ROWS_MAX } from './limits.ts';
import type { ModelContext } from './model-context.ts';
import { readEntries, readModel } from './stored-model.ts';

export function revisionRowOf(known: Registry, revision: string): RevisionRow {
  const { standing, ...found } = known.revisions[revision] as Registry['revisions'][string];
  const aliases = Object.entries(known.aliases).filter(([, named]) => named.revision === revision);
  return { revision, ...found, ...standing, aliases: aliases.map(([alias]) => alias).sort() };
}

export const aliasRowOf = ({ aliases, at }: Registry, alias: string): AliasRow => ({
  alias,
  ...((Object.hasOwn(aliases, alias) && aliases[alias]) || { since: at }),
});

export function stateOf(known: Registry): ModelState {
  const { model, seq, at } = known;
  const revisions = Object.keys(known.revisions).map((revision) => revisionRowOf(known, revision));
  return {
    model,
    seq,
    at,
    revisions: revisions.sort((one, other) => one.registered - other.registered),
    aliases: Object.keys(known.aliases)
      .sort()
      .map((alias) => aliasRowOf(known, alias)),
  };
}

/** Returns the current state, or the state at `at`, replayed from the log. */
export async function getModel(context: ModelContext, model: string, at: number | undefined): Promise<ModelState> {
  const { registry } = await readModel(context, model);
  if (at === undefined || at >= registry.at) return stateOf(registry);
  let known = newRegistry(model);
  for (;;) {
    const entries = await readEntries(context, model, known.seq, MODEL_LOG_ROWS_MAX);
    const before = entries.filter((one) => one.at <= at);
    known = before.reduce(applyEntry, known);
    if (entries.length === 0 || before.length < entries.length) return stateOf(known);
  }
}
