import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';
import { candidatesFor } from './constraints.ts';
import { isRealtime } from './cost.ts';
import type { RouteRequest } from './route.ts';

/** Age of a report after which its full queues may have places again: two heartbeats. */
const FULL_REPORT_MS = 2_000;
/** Classes whose requests the edge refuses before it reads the body; the agents order the others. */
const shedClasses: ReadonlySet<RequestClass> = new Set(['default', 'batch']);

/**
 * Returns `pool_busy` for a request that every candidate is about to refuse, so that its body is neither read nor
 * sent: each has reported lately that it has no place for the class. Realtime speech is never refused here.
 */
export function shed(request: RouteRequest, snapshots: readonly Snapshot[], now: number): Refusal | undefined {
  if (isRealtime(request) || !shedClasses.has(request.class)) return undefined;
  const able = candidatesFor(request, snapshots, now);
  if (!able.ok) return undefined;
  const isFull = ({ entry: { load, heard } }: (typeof able.value)[number]) =>
    now - heard <= FULL_REPORT_MS && load.full?.includes(request.class) === true;
  if (!able.value.every(isFull)) return undefined;
  return refuse('pool_busy', undefined, `the queue of class ${request.class} is full at ${able.value.length} agents`);
}
