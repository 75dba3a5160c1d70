import { tiers } from '../../shared/pool/description.ts';
import type { Part } from '../../shared/registry/release.ts';
import { cohortOf } from './cohort.ts';
import type { Candidate, RouteRequest } from './route.ts';

/**
 * Returns the revisions that a session may get. A session stays with its own revision. A canary session falls back to
 * the stable revision; a stable session never meets a canary. The former stable revision serves until an agent has the
 * new one loaded. An agent loads a revision for a request only where no other revision that the session may get is
 * loaded.
 */
export function inCohort(
  { tenant, session, sticky = session, canaryShare, revision }: RouteRequest,
  able: readonly Candidate[],
): readonly Candidate[] {
  const own = able.filter(({ model, part }) => model.revision === revision && part !== 'grey' && model.tier !== 'blob');
  if (own.length > 0) return own;
  const share = canaryShare ?? able.find(({ part }) => part === 'canary')?.share ?? 0;
  const parts: readonly Part[] = ['canary', 'full', 'older'];
  const allowed = cohortOf(tenant, sticky, share) === 'canary' ? parts : parts.slice(1);
  const groups = allowed.map((part) => able.filter((candidate) => candidate.part === part));
  const ready = groups.find((group) => group.some(({ model }) => model.tier === undefined));
  return ready ?? groups.find((group) => group.length > 0) ?? [];
}

/** Returns how far a revision is from being served; 0 when it is loaded. */
const coldness = ({ model }: Candidate): number => (model.tier === undefined ? 0 : 1 + tiers.indexOf(model.tier));

/** Leaves one revision of each agent: the warmest, then the one that came last. */
export function onePerAgent(cohort: readonly Candidate[]): readonly Candidate[] {
  const best = new Map<string, Candidate>();
  for (const candidate of cohort) {
    const known = best.get(candidate.agent);
    const colder = known ? coldness(candidate) - coldness(known) : -1;
    const isNewer = known !== undefined && candidate.model.loaded > known.model.loaded;
    if (colder < 0 || (colder === 0 && isNewer)) best.set(candidate.agent, candidate);
  }
  return [...best.values()];
}

/** Returns the candidates in the warmest tier that any of them has. */
export function warmest(candidates: readonly Candidate[]): readonly Candidate[] {
  const least = Math.min(...candidates.map(coldness));
  return candidates.filter((candidate) => coldness(candidate) === least);
}
