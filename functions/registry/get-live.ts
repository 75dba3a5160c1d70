// Live evidence of a revision, for gates and people.

import { refuse } from '../../shared/refusal.ts';
import type { LiveEvidence } from '../../shared/registry/contract.ts';
import { type Evidence, evaluateEvidence } from '../../shared/registry/evidence.ts';
import { noCounts } from '../../shared/registry/live-counts.ts';
import type { Registry } from '../../shared/registry/registry.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { ModelContext } from './model-context.ts';
import { type Live, readLive } from './stored-live.ts';
import { readModel } from './stored-model.ts';
import { evaluateTrial, evidenceOf, followStanding, isUnderWay } from './trial.ts';

/**
 * Returns what gates weigh against signed evidence: counts since the revision came to where it stands. Until the next
 * judgement after a step of the canary, these are the counts of the shares before, so that the step opens no window in
 * which a signed report is all there is.
 */
export async function readLiveEvidence(
  context: Pick<ModelContext, 'rows' | 'log'>,
  known: Registry,
  revision: string,
): Promise<Evidence[]> {
  const { live } = await readLive(context, known.model);
  const found = known.revisions[revision];
  const trial = found && isUnderWay(found.standing) && live.trials[revision];
  const followed = trial && followStanding(trial, found.standing, found.since, noCounts);
  return followed ? evidenceOf(followed) : [];
}

function trialOf({ trials }: Live, known: Registry, revision: string) {
  const trial = trials[revision];
  return trial && trial.since === known.revisions[revision]?.since ? trial : undefined;
}

export async function getLiveEvidence(
  context: ModelContext,
  model: string,
  revision: string,
): Promise<Result<LiveEvidence>> {
  const [{ registry }, { live }] = await Promise.all([readModel(context, model), readLive(context, model)]);
  const found = registry.revisions[revision];
  if (!found) return no(refuse('revision_unknown', { model }));
  const now = context.now();
  const trial = trialOf(live, registry, revision);
  const evidence = trial ? evidenceOf(trial) : [];
  return ok({
    revision,
    ...found.standing,
    since: found.since,
    evidence,
    verdicts: Object.fromEntries(evidence.map((one) => [one.kind, evaluateEvidence(one, now)])),
    ...(trial && { verdict: evaluateTrial(trial, now) }),
    windows: live.traffic[revision]?.windows ?? [],
  });
}
