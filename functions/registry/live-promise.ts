// Check of a latency promise against live traffic.
import { type Evidence, evaluateEvidence } from '../../shared/registry/evidence.ts';
import { leastInBucketTo } from '../../shared/registry/live-counts.ts';
import type { Sla } from '../../shared/registry/sla.ts';
import type { Traffic } from './stored-live.ts';

/**
 * Returns evidence of a missed promise, from windows since the revision came to its stage; otherwise
 * `undefined`.
 */
export function missedLive(
  promised: Sla | undefined,
  windows: Traffic['windows'],
  since: number,
  now: number,
): Evidence | undefined {
  if (promised?.latencyMs === undefined) return undefined;
  // The end of a bucket may be a fifth too high: the lower end counts, so that rounding withdraws no
  // revision.
  const times = windows.flatMap(({ from, p95 }) => (from >= since && p95 !== undefined ? [leastInBucketTo(p95)] : []));
  const one: Evidence = { kind: 'latency', tool: 'live traffic', sla: promised.latencyMs, windows: times };
  return evaluateEvidence(one, now) === 'FAIL' ? one : undefined;
}
