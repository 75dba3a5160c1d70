// A promise of latency, on live traffic: what people are answered is the load that counts.
import { type Evidence, judgeEvidence } from '../../shared/model/evidence.ts';
import { leastInBucketTo } from '../../shared/model/live-counts.ts';
import type { Sla } from '../../shared/model/sla.ts';
import type { Traffic } from './kept-live.ts';

/** Evidence that it is missed, `undefined` when there is none: windows since the revision came to where it stands. */
export function missedLive(
  promised: Sla | undefined,
  windows: Traffic['windows'],
  since: number,
  now: number,
): Evidence | undefined {
  if (promised?.latencyMs === undefined) return undefined;
  // The end of a bucket may be a fifth too much, and nobody is taken back for what counting adds.
  const times = windows.flatMap(({ from, p95 }) => (from >= since && p95 !== undefined ? [leastInBucketTo(p95)] : []));
  const one: Evidence = { kind: 'latency', tool: 'live traffic', sla: promised.latencyMs, windows: times };
  return judgeEvidence(one, now) === 'FAIL' ? one : undefined;
}
