// Retirement by an operator without a statement: the functions sign one. Retirement has no gate, and an
// operator may do more: move an alias.

import { refuse } from '../../shared/refusal.ts';
import type { TransitionRow } from '../../shared/registry/contract.ts';
import { no, type Result } from '../../shared/result.ts';
import type { ModelContext } from './model-context.ts';
import { moveAsFunctions } from './move-as-functions.ts';
import { readModel } from './stored-model.ts';

export async function retireRevision(
  context: ModelContext,
  model: string,
  revision: string,
  tenant: string,
): Promise<Result<TransitionRow>> {
  if (!context.ownKey) return no(refuse('models_closed', undefined, 'no SERVICE_KEY'));
  const { registry } = await readModel(context, model);
  const found = registry.revisions[revision];
  if (!found) return no(refuse('revision_unknown', { model }));
  const reason = `asked for by an operator of ${tenant}`;
  return moveAsFunctions(context, context.ownKey, found, {
    model,
    revision,
    to: { stage: 'retired' },
    reason,
    evidence: [],
  });
}
