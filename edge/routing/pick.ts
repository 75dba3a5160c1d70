import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { choose } from './choose.ts';
import { candidatesFor } from './constraints.ts';
import { costContext, isRealtime } from './cost.ts';
import { type RouteMemory, withoutEjected } from './memory.ts';
import { revisionsFor, warmest } from './revisions.ts';
import type { Attempt, Candidate, RouteRequest } from './route.ts';
import { inOrderOf } from './sticky.ts';

export type { Attempt, RouteRequest } from './route.ts';

/** Attempts of a request: one retry on another pool; more multiplies an outage. */
export const ATTEMPTS_MAX = 2;

export interface PickContext {
  readonly snapshots: readonly Snapshot[];
  readonly memory: RouteMemory;
  /** Epoch ms. */
  readonly now: number;
  /** Returns numbers from 0 up to 1; the same numbers give the same choice. */
  readonly random: () => number;
}

/**
 * Decides the route of a request: attempts in order with their reasons, or a refusal. Each attempt is one
 * revision at one agent. Hard constraints come first and hold for every attempt; then the cohort, then the
 * tier, then the cost. Refusals: `model_unknown`, `model_unfit`, `model_not_live`, `residency_mismatch`,
 * `language_unknown`, `language_forbidden`, `no_pool`.
 */
export function pick(request: RouteRequest, context: PickContext): Result<Attempt[]> {
  const { snapshots, memory, now } = context;
  const able = candidatesFor(request, snapshots, now);
  if (!able.ok) return able;
  const cohort = revisionsFor(request, able.value);
  let rest = withoutEjected(cohort, memory, now);
  if (rest.length === 0) return no(refuse('no_pool', undefined, 'no agent serves the stable revision'));
  const [only] = rest;
  if (only && rest.length === 1 && request.sticky === undefined) {
    return ok([attemptAt(only, 'the only one of 1')]);
  }
  if (request.sticky !== undefined) return ok(chooseSticky(request, request.sticky, rest));
  const warmestOfAll = warmest(rest);
  const isOneTier = warmestOfAll === rest;
  const costs = costContext(warmestOfAll, request, memory, now);
  const attempts: Attempt[] = [];
  while (rest.length > 0 && attempts.length < ATTEMPTS_MAX) {
    const warm = isOneTier ? rest : warmest(rest);
    const pool = attempts[0]?.entry.description.pool;
    const elsewhere = pool === undefined ? warm : warm.filter(({ entry }) => entry.description.pool !== pool);
    const preferred = elsewhere.length ? elsewhere : warm;
    const { chosen, rule } = choose(request, preferred, costs, context.random);
    attempts.push(attemptAt(chosen, `${rule} of ${preferred.length}`));
    rest = rest.filter(({ agent }) => agent !== chosen.agent);
  }
  return ok(attempts);
}

/** Explains a choice: the rule, the part of the revision unless it is `full`, and its tier unless it is loaded. */
function attemptAt({ entry, model, part }: Candidate, rule: string): Attempt {
  const why = [rule, part === 'full' ? '' : part, model.tier ? `in ${model.tier}` : ''].filter(Boolean).join(', ');
  return { entry, model, why };
}

/**
 * Step 3 for requests with state in one agent: a rendezvous hash, GPUs before other agents (A9), whatever the load.
 * An agent that holds a sequence stays in the order when a GPU joins, so that a retry finds the sequence there.
 */
function chooseSticky({ tenant, model, ...request }: RouteRequest, key: string, rest: readonly Candidate[]): Attempt[] {
  const warm = warmest(rest).map((candidate) => ({ ...candidate, slots: candidate.entry.description.slots }));
  const isFast = ({ entry }: Candidate) => isRealtime(request) && entry.description.accelerator === 'gpu';
  const ordered = inOrderOf(`${tenant}\n${model}\n${key}`, warm);
  return [...ordered.filter(isFast), ...ordered.filter((candidate) => !isFast(candidate))]
    .slice(0, ATTEMPTS_MAX)
    .map((choice, at) => attemptAt(choice, `sticky, choice ${at + 1} of ${warm.length}`));
}
