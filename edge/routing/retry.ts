import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { ANSWER_START_MS } from '../../shared/pool/limits.ts';
import { type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { candidatesFor } from './constraints.ts';
import type { RouteMemory } from './memory.ts';
import { ATTEMPTS_MAX, pick } from './pick.ts';
import type { Attempt, RouteRequest } from './route.ts';

/** Share that retries may add to the load of a zone. */
export const RETRY_SHARE = 0.1;
/** Retries of an isolate before it has seen enough requests for RETRY_SHARE to mean anything. */
export const RETRY_BURST = 10;
/**
 * Time for the agents of one request to answer, failed calls included: its caller reads a refusal within 8 s.
 */
export const REACH_MS = 7_500;

/** Retry budget of an isolate: each request adds a share, each retry takes one. */
export interface RetryBudget {
  readonly left: number;
}

export const fullBudget: RetryBudget = { left: RETRY_BURST };

export const earn = ({ left }: RetryBudget): RetryBudget => ({
  left: Math.min(RETRY_BURST, left + RETRY_SHARE),
});

export interface Failure {
  readonly refusal: Refusal;
  /** Attempts made, this one included. */
  readonly made: number;
  /** Attempts that could still be made. */
  readonly remaining: number;
  /** The body can be sent again from its first byte. */
  readonly replayable: boolean;
  /** The caller has seen part of an answer. */
  readonly delivered: boolean;
  /** A person waits for each word. */
  readonly realtime: boolean;
}

/** Refusals that another agent may not repeat. Any other is about the request and would repeat there. */
const elsewhere: ReadonlySet<Reason> = new Set([
  'pool_lost',
  'pool_busy',
  'misdirected',
  'seal_broken',
  'attestation_invalid',
  'engine_failed',
  // The disk of one agent is full, not that of the edge, which refuses before there is an agent.
  'storage_full',
  // Another agent may have the sequence: the preferred agent may have joined since.
  'sequence_unknown',
]);

/** Refusals between edge and agent, which mean nothing to a client. */
const internal: ReadonlySet<Reason> = new Set([
  'ticket_invalid',
  'ticket_replayed',
  'misdirected',
  'seal_broken',
  'attestation_invalid',
]);

export type Next =
  | { readonly again: true; readonly budget: RetryBudget }
  | { readonly again: false; readonly refusal: Refusal };

/**
 * Refusals that an agent makes before it works. Their retries multiply no load, so they cost no budget: an outage that
 * used it up must not end the sequences of callers.
 */
const free: ReadonlySet<Reason> = new Set(['sequence_unknown']);

/** Reports whether another agent may do better. */
export const isWorthRetry = ({ reason }: Refusal): boolean => elsewhere.has(reason);

/** Decides whether another agent is tried, or which refusal the caller gets. */
export function afterFailure(failure: Failure, budget: RetryBudget): Next {
  const { refusal, made, remaining, replayable, delivered, realtime } = failure;
  const worth = isWorthRetry(refusal) && replayable && !delivered;
  // Patient classes spend the budget in an overload. Realtime speech still leaves a full agent for another.
  const isFree = free.has(refusal.reason) || (realtime && refusal.reason === 'pool_busy');
  const cost = isFree ? 0 : 1;
  if (worth && remaining > 0 && made < ATTEMPTS_MAX && budget.left >= cost) {
    return { again: true, budget: { left: budget.left - cost } };
  }
  return { again: false, refusal: publicRefusal(refusal) };
}

/** Returns the refusal that the client reads: `pool_lost` for one between edge and agent. */
export function publicRefusal(refusal: Refusal): Refusal {
  if (!internal.has(refusal.reason)) return refusal;
  return refuse('pool_lost', undefined, [refusal.reason, refusal.detail].filter(Boolean).join(': '));
}

/** Knowledge at the time of a decision. */
interface Moment {
  readonly snapshots: readonly Snapshot[];
  readonly memory: RouteMemory;
  /** ms since 1970. */
  readonly now: number;
  readonly random: () => number;
}

/** Returns how long the next agent may take to answer a call after unanswered ones took `spentMs`, ms. */
export const answerTimeLeft = (spentMs: number): number => Math.min(ANSWER_START_MS, REACH_MS - spentMs);

/**
 * Returns the attempts that are left of a plan after `made` of them failed. An agent that was able when the request began
 * may have reported since that its engine is away: a caller that waits for each such agent in turn learns late of an
 * outage that the roster knows.
 */
export function attemptsLeft(
  planned: readonly Attempt[],
  made: number,
  request: RouteRequest,
  { snapshots, memory, now, random }: Moment,
): readonly Attempt[] {
  const pairOf = ({ entry, model }: Omit<Attempt, 'why'>) => `${entry.description.agent} ${model.revision}`;
  const tried = planned.slice(0, made).map(({ entry }) => entry.description.agent);
  const untried = { ...request, exclude: new Set(tried) };
  const able = candidatesFor(untried, snapshots, now);
  if (!able.ok) return [];
  const pairs = new Set(able.value.map(pairOf));
  const left = planned.slice(made).filter((attempt) => pairs.has(pairOf(attempt)));
  if (left.length > 0) return left;
  const picked = pick(untried, { snapshots, memory, now, random });
  return picked.ok ? picked.value : [];
}
