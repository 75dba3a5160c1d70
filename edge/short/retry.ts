import { limits } from '../../shared/limits.ts';
import { type Reason, type Refusal, refuse } from '../../shared/refusal.ts';

/** Retries an isolate may still make: every request adds a share, every retry takes one. */
export interface RetryBudget {
  readonly left: number;
}

export const fullBudget: RetryBudget = { left: limits.retryBurst.value };

export const earn = ({ left }: RetryBudget): RetryBudget => ({
  left: Math.min(limits.retryBurst.value, left + limits.retryShare.value),
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
}

/** What another agent may well do better. Everything else is about the request, and would fail there, too. */
const elsewhere: ReadonlySet<Reason> = new Set([
  'pool_lost',
  'pool_busy',
  'misdirected',
  'seal_broken',
  'attestation_invalid',
  'engine_failed',
  // The disk of one agent is full, not that of the edge, which refuses before there is an agent.
  'storage_full',
  // Another agent may have it: the one that is preferred now has come later.
  'sequence_unknown',
]);

/** Between edge and agent only; to a caller they say that the pool was lost. */
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

/** Reports whether another agent may do better. */
export const isWorthRetry = ({ reason }: Refusal): boolean => elsewhere.has(reason);

/** Another agent, or the refusal that the caller gets. */
export function afterFailure(failure: Failure, budget: RetryBudget): Next {
  const { refusal, made, remaining, replayable, delivered } = failure;
  const worth = isWorthRetry(refusal) && replayable && !delivered;
  if (worth && remaining > 0 && made < limits.attempts.value && budget.left >= 1) {
    return { again: true, budget: { left: budget.left - 1 } };
  }
  if (!internal.has(refusal.reason)) return { again: false, refusal };
  const detail = [refusal.reason, refusal.detail].filter(Boolean).join(': ');
  return { again: false, refusal: refuse('pool_lost', undefined, detail) };
}
