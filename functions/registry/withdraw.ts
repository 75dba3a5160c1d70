// Withdrawal of a revision that fails on live traffic, by a statement that the functions sign, with the
// counts. Withdrawal has no gate.

import type { Evidence } from '../../shared/registry/evidence.ts';
import { showStanding } from '../../shared/registry/stage.ts';
import type { ModelContext } from './model-context.ts';
import { moveAlias } from './move-alias.ts';
import { moveAsFunctions } from './move-as-functions.ts';
import { readModel } from './stored-model.ts';
import { evidenceOf, type Trial } from './trial.ts';

const REASON = 'live traffic: FAIL';

/** A revision whose trial failed. */
export interface FailedRevision {
  readonly revision: string;
  readonly failed: Trial;
  /** Evidence of a missed promise. */
  readonly late: Evidence | undefined;
}

/**
 * Moves aliases and revision back. Does nothing when the revision has moved meanwhile; a failure is retried
 * with the next, equal verdict.
 */
export async function withdraw(
  context: ModelContext,
  model: string,
  { revision, failed, late }: FailedRevision,
): Promise<void> {
  const { registry } = await readModel(context, model);
  const found = registry.revisions[revision];
  if (found?.since !== failed.since) return;
  for (const [alias, { revision: named, before }] of Object.entries(registry.aliases)) {
    if (named !== revision) continue;
    const moved = await moveAlias(context, model, { alias, from: revision, revision: before, reason: REASON });
    if (!moved.ok) context.log({ what: 'not withdrawn', detail: `alias ${alias}: ${moved.refusal.reason}` });
  }
  if (!context.ownKey) return context.log({ what: 'not withdrawn', detail: 'no SERVICE_KEY' });
  const moved = await moveAsFunctions(context, context.ownKey, found, {
    model,
    revision,
    to: { stage: 'develop-verify' },
    reason: `${REASON} at ${showStanding(found.standing)}`,
    evidence: [...evidenceOf(failed), ...(late ? [late] : [])],
  });
  if (!moved.ok) context.log({ what: 'not withdrawn', detail: moved.refusal.reason });
}
