// Tiers of revisions: the worker of the timer, and the answers to operators.
import { createHash } from 'node:crypto';
import { eventId } from '../../shared/audit/event-id.ts';
import type { ModelTiers, StoreTiers } from '../../shared/registry/tiers.ts';
import { ok } from '../../shared/result.ts';
import { blobPolicy } from '../tier/decide.ts';
import { explainRevision, summarise } from '../tier/explain.ts';
import { type Plan, type PlannedMove, readPlan } from '../tier/plan.ts';
import { type Swept, sweepTiers } from '../tier/sweep.ts';
import type { ModelContext } from './model-context.ts';
import { readTierFacts } from './tier-facts.ts';

/** Performs the moves that are due. For the timer. */
export const moveTiers = (context: ModelContext): Promise<Swept> =>
  sweepTiers({
    ...{ rows: context.rows, blobs: context.blobs, log: context.log, now: context.now },
    facts: () => readTierFacts(context),
    report: async (move, plan) =>
      context.audit ? context.audit.report(context.zone, draftOf(move), idOf(move, plan)) : ok(undefined),
  });

/** Returns the id of a move's event, the same for each worker that performs it. */
const idOf = ({ digest }: PlannedMove, { seq, at }: Plan): string =>
  eventId(at, createHash('sha256').update(`tier ${seq} ${digest}`).digest().subarray(0, 10));

const draftOf = ({ digest, from, to, rule, priority, model, revision }: PlannedMove) => ({
  ...({ type: 'model.tier', model, revision, file: digest, from, to, rule } as const),
  ...(priority && { priority }),
});

export async function getModelTiers(context: ModelContext, model: string): Promise<ModelTiers> {
  const [facts, { plan }] = await Promise.all([readTierFacts(context), readPlan(context.rows)]);
  const at = { now: context.now(), returns: plan.returns };
  const revisions = facts.revisions.filter((one) => one.model === model);
  return {
    ...{ model, prices: blobPolicy.prices.name },
    revisions: revisions.map((one) => explainRevision(one, facts, blobPolicy, at)),
  };
}

export const getStoreTiers = async (context: ModelContext): Promise<StoreTiers> =>
  summarise(await readTierFacts(context), blobPolicy);
