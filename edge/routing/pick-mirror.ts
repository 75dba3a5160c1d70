import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { newestRelease } from '../../shared/registry/release.ts';
import { candidatesFor } from './constraints.ts';
import type { Attempt, RouteRequest } from './route.ts';

/**
 * Picks an agent for a copy of the request: one with a revision on trial, under the same constraints as the
 * serving agent, for the share of requests in the release map. Returns `undefined` for all other requests. No
 * agent loads a revision for a copy.
 */
export function pickMirror(
  request: RouteRequest,
  snapshots: readonly Snapshot[],
  now: number,
  random: () => number,
): Attempt | undefined {
  if (!snapshots.some(({ release }) => release?.models[request.model]?.grey)) return undefined;
  const grey = newestRelease(snapshots.map(({ release }) => release))?.models[request.model]?.grey;
  if (!grey || random() >= grey.share) return undefined;
  const found = candidatesFor(request, snapshots, now);
  const able = found.ok ? found.value : [];
  const trying = able.filter(({ part, model }) => part === 'grey' && model.tier === undefined);
  const one = trying[Math.floor(random() * trying.length)];
  return one && { entry: one.entry, model: one.model, why: `copy for ${one.model.revision.slice(0, 19)}` };
}
