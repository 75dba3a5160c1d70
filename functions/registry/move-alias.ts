// Alias moves. A rollback is a move to the former revision.
import type { AliasRow } from '../../shared/registry/contract.ts';
import { ok, type Result } from '../../shared/result.ts';
import { afterEntry } from './after-entry.ts';
import { type AliasMove, decideAlias } from './decide.ts';
import { aliasRowOf } from './get-model.ts';
import type { ModelContext } from './model-context.ts';
import { append } from './stored-model.ts';

export async function moveAlias(context: ModelContext, model: string, move: AliasMove): Promise<Result<AliasRow>> {
  const done = await append(context, model, (known) => {
    const decided = decideAlias(known, move);
    return decided.ok ? ok({ draft: decided.value, answer: undefined }) : decided;
  });
  if (!done.ok) return done;
  const published = await afterEntry(context, model);
  return published.ok ? ok(aliasRowOf(done.value.registry, move.alias)) : published;
}
