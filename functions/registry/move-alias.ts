// Alias moves. A rollback is a move to the former revision.
import type { AliasRow } from '../../shared/registry/contract.ts';
import { ok, type Result } from '../../shared/result.ts';
import { afterEntry } from './after-entry.ts';
import { type AliasMove, decideAlias } from './decide.ts';
import { aliasRowOf } from './get-model.ts';
import type { ModelContext } from './model-context.ts';
import { requireOnline } from './require-online.ts';
import { append } from './stored-model.ts';

export async function moveAlias(context: ModelContext, model: string, move: AliasMove): Promise<Result<AliasRow>> {
  const done = await append(context, model, async (known) => {
    const decided = decideAlias(known, move);
    if (!decided.ok) return decided;
    const { revision } = move;
    // A roll-back waits for no file: its target is never archived, and agents may have it.
    const isBack = Object.hasOwn(known.aliases, move.alias) && known.aliases[move.alias]?.before === revision;
    const online = revision === undefined || isBack ? ok(undefined) : await requireOnline(context, model, revision);
    return online.ok ? ok({ draft: decided.value, answer: undefined }) : online;
  });
  if (!done.ok) return done;
  const published = await afterEntry(context, model);
  return published.ok ? ok(aliasRowOf(done.value.registry, move.alias)) : published;
}
