// Worker of the timer: decides moves of files between tiers, stores them as a plan, and performs and reports each.
// Storage changes a tier in place and knows of returns in progress, so a worker repeats a plan at any point.
//
//   facts ──decide──► plan stored ──facts again──► tier set ──► event reported ──► plan emptied
//
// The second look at the facts finds what has changed since the decision: whatever needs a revision notes a use before
// it reads the plan (registry/require-online.ts), so that one of the two sees the other.
import type { Result } from '../../shared/result.ts';
import type { PlainBlobs } from '../store/blobs.ts';
import { MODELS } from '../store/blobs.ts';
import type { Rows } from '../store/rows.ts';
import { type BlobMove, blobPolicy, decideBlob, decideBlobs, type StoredBlob } from './decide.ts';
import type { TierFacts } from './facts.ts';
import { PLAN_MOVES_MAX, type Plan, type PlannedMove, readPlan, type StoredPlan, writePlan } from './plan.ts';

/** Lease of a worker: PLAN_MOVES_MAX moves at MOVES_AT_ONCE, each with two calls of up to 10 s. */
const LEASE_MS = 240_000;
/** End of the lease in which no move begins: a call ends in less. */
const LEASE_MARGIN_MS = 30_000;
const MOVES_AT_ONCE = 16;
/** Workers that try a move which storage refuses, before it is dropped. The next decision may ask for it again. */
const TRIES_MAX = 5;

export interface TierContext {
  readonly rows: Rows;
  readonly blobs: Pick<PlainBlobs, 'setTier'>;
  facts(): Promise<TierFacts>;
  /** Writes the audit event of a move; a repeated one is the same event. */
  report(move: PlannedMove, plan: Plan): Promise<Result<unknown>>;
  log(line: { readonly what: 'tier moved' | 'tier unmoved'; readonly detail: string }): void;
  /** Milliseconds since 1970. */
  now(): number;
}

/** `busy`: another worker performs a plan. `open`: a later worker performs the rest of this one. */
export type Swept = 'idle' | 'busy' | 'done' | 'open';

export async function sweepTiers(context: TierContext): Promise<Swept> {
  const stored = await readPlan(context.rows);
  const now = context.now();
  const { plan } = stored;
  const isOpen = plan.moves.length > 0;
  if (isOpen && now < plan.until) return 'busy';
  const moves = isOpen ? plan.moves : chooseMoves(await context.facts(), now);
  if (moves.length === 0) return 'idle';
  const begun: Plan = {
    ...(isOpen ? { ...plan, tries: plan.tries + 1 } : { ...plan, seq: plan.seq + 1, at: now, tries: 1 }),
    ...{ moves, until: now + LEASE_MS },
  };
  if (!(await writePlan(context.rows, begun, stored))) return 'busy';
  return performPlan(context, begun);
}

/** Returns the moves to perform next: needed ones before cheaper ones, and among these the largest savings. */
function chooseMoves({ revisions, blobs }: TierFacts, now: number): PlannedMove[] {
  const saving = ({ reasons, from, to }: BlobMove) => reasons.costs[from] - reasons.costs[to];
  const rank = (move: BlobMove) => (move.rule === 'cheaper' ? saving(move) : Number.POSITIVE_INFINITY);
  const owners = new Map(revisions.flatMap((one) => one.files.map(({ digest }) => [digest, one] as const)));
  return decideBlobs([...blobs.values()], blobPolicy, now)
    .map((move) => ({ move, rank: rank(move) }))
    .sort((one, other) => (one.rank === other.rank ? 0 : other.rank - one.rank))
    .slice(0, PLAN_MOVES_MAX)
    .flatMap(({ move: { digest, from, to, rule, priority, expectedAt: expected } }) => {
      const { model, revision } = owners.get(digest) ?? {};
      if (model === undefined || revision === undefined) return [];
      return [{ digest, from, to, rule, ...(priority && { priority }), expected, model, revision }];
    });
}

async function performPlan(context: TierContext, begun: Plan): Promise<Swept> {
  const { blobs } = await context.facts();
  const done = new Set<string>();
  const open: PlannedMove[] = [];
  const waiting = begun.moves.values();
  const work = async () => {
    for (const move of waiting) {
      const outcome = await perform(context, begun, move, blobs.get(move.digest));
      if (outcome === 'open') open.push(move);
      if (outcome === 'done') done.add(move.digest);
    }
  };
  await Promise.all(Array.from({ length: MOVES_AT_ONCE }, work));
  const returns = Object.entries(begun.returns).filter(([digest]) => blobs.get(digest)?.tier === 'archive');
  const begunReturns = begun.moves.filter(({ digest, from }) => from === 'archive' && done.has(digest));
  const next: Plan = {
    ...{ ...begun, until: context.now(), moves: open },
    returns: Object.fromEntries([...returns, ...begunReturns.map(({ digest, expected }) => [digest, expected])]),
  };
  const stored = await readPlan(context.rows);
  if (isTaken(stored, begun) || !(await writePlan(context.rows, next, stored))) return 'busy';
  return open.length > 0 ? 'open' : 'done';
}

/** Reports that the lease has passed to another worker. */
const isTaken = ({ plan }: StoredPlan, { seq, until }: Plan): boolean => plan.seq !== seq || plan.until !== until;

/** Performs a move that is still decided. `open`: its outcome or its event is missing, and a later worker goes on. */
async function perform(
  context: TierContext,
  plan: Plan,
  move: PlannedMove,
  blob: StoredBlob | undefined,
): Promise<'done' | 'dropped' | 'open'> {
  if (context.now() > plan.until - LEASE_MARGIN_MS) return 'open';
  const { digest, from, to, rule, priority } = move;
  if (!blob) return 'dropped';
  if (!isPerformed(move, blob)) {
    if (decideBlob(blob, blobPolicy, context.now())?.to !== to) return 'dropped';
    try {
      await context.blobs.setTier(MODELS, digest, to, priority);
    } catch (error) {
      const name = error instanceof Error ? error.name : 'unknown';
      context.log({ what: 'tier unmoved', detail: `${digest} ${from} → ${to}: ${name}` });
      return plan.tries < TRIES_MAX ? 'open' : 'dropped';
    }
  }
  if (!(await context.report(move, plan)).ok) return 'open';
  context.log({ what: 'tier moved', detail: `${digest} ${from} → ${to}, ${rule}` });
  return 'done';
}

const isPerformed = ({ to, priority }: PlannedMove, { tier, moving }: StoredBlob): boolean =>
  tier === to || (moving?.to === to && (priority !== 'high' || moving.priority === 'high'));
