import { newestRelease } from '../model/release.ts';
import type { Snapshot } from './heartbeat.ts';
import { type Attempt, candidatesFor, type RouteRequest } from './pick.ts';

/**
 * Who gets a copy of the request, if anybody: one of the agents with a revision on trial, by the same constraints as who
 * serves it, for the share of the requests that the release map says. `undefined`, nearly always: nobody.
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
  const trying = found.ok ? found.value.filter(({ part }) => part === 'grey') : [];
  const one = trying[Math.floor(random() * trying.length)];
  return one && { entry: one.entry, model: one.model, why: `copy for ${one.model.revision.slice(0, 19)}` };
}
