// Row of the moves that a worker performs. Its version makes one worker at a time the writer, its lease lets the next
// worker resume after a crash, and readers find in it what is about to be archived.
import { z } from 'zod';
import { fileDigest } from '../../shared/registry/model-files.ts';
import { revisionDigest } from '../../shared/registry/revision.ts';
import { blobTier, moveRule, rehydratePriority } from '../../shared/registry/tiers.ts';
import type { Rows } from '../store/rows.ts';

/** Moves of one plan, so that its row stays below half of the 150,000 characters that a row takes. */
export const PLAN_MOVES_MAX = 150;
/** Returns whose expected time is stored. Of further ones the longest wait is assumed. */
const RETURNS_MAX = 500;

/** Partition name that no model can have. */
const PARTITION = '@tiers';
const KEY = 'plan';

export const plannedMove = z.object({
  digest: fileDigest,
  from: blobTier,
  to: blobTier,
  rule: moveRule,
  priority: rehydratePriority.optional(),
  /** Time to plan with, ms since 1970. */
  expected: z.number(),
  /** One of the revisions that contain the file. */
  model: z.string(),
  revision: revisionDigest,
});
export type PlannedMove = z.infer<typeof plannedMove>;

const plan = z.object({
  /** Number of the plan, and the time at which it was made: ids of its audit events derive from both. */
  seq: z.number().int(),
  at: z.number().int(),
  /** End of the worker's lease, ms since 1970. */
  until: z.number().int(),
  /** Number of workers that began it. */
  tries: z.number().int(),
  moves: z.array(plannedMove).max(PLAN_MOVES_MAX),
  /** Expected times of returns from archive, by digest. */
  returns: z.record(fileDigest, z.number()),
});
export type Plan = z.infer<typeof plan>;

const NONE: Plan = { seq: 0, at: 0, until: 0, tries: 0, moves: [], returns: {} };

export interface StoredPlan {
  readonly plan: Plan;
  readonly version: string | undefined;
}

export async function readPlan(rows: Pick<Rows, 'read'>): Promise<StoredPlan> {
  const row = await rows.read(PARTITION, KEY);
  return row ? { plan: plan.parse(row.value), version: row.version } : { plan: NONE, version: undefined };
}

/** Replaces the plan that was read; `false` when another worker has replaced it. */
export function writePlan(rows: Rows, next: Plan, { version }: Pick<StoredPlan, 'version'>): Promise<boolean> {
  const value = { ...next, returns: Object.fromEntries(Object.entries(next.returns).slice(-RETURNS_MAX)) };
  return rows.commit(PARTITION, [
    version === undefined ? { type: 'insert', key: KEY, value } : { type: 'replace', key: KEY, value, version },
  ]);
}
