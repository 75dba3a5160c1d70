import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import type { RouteMemory } from '../../shared/pool/memory.ts';
import { type Attempt, candidatesFor, pick, type RouteRequest } from '../../shared/pool/pick.ts';

/** What is known at the moment of the decision. */
interface Moment {
  readonly snapshots: readonly Snapshot[];
  readonly memory: RouteMemory;
  /** ms since 1970. */
  readonly now: number;
  readonly random: () => number;
}

/** Returns how long the next agent may take to answer a call after unanswered ones took `spentMs`, ms. */
export const answerTimeLeft = (spentMs: number): number =>
  Math.min(limits.answerStartMs.value, limits.reachMs.value - spentMs);

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
  const agentOf = ({ entry }: Pick<Attempt, 'entry'>) => entry.description.agent;
  const untried = { ...request, exclude: new Set(planned.slice(0, made).map(agentOf)) };
  const able = candidatesFor(untried, snapshots, now);
  if (!able.ok) return [];
  const names = new Set(able.value.map(agentOf));
  const left = planned.slice(made).filter((attempt) => names.has(agentOf(attempt)));
  if (left.length > 0) return left;
  const picked = pick(untried, snapshots, memory, now, random);
  return picked.ok ? picked.value : [];
}
