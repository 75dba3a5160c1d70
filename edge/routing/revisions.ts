import { tiers } from '../../shared/pool/description.ts';
import type { Part } from '../../shared/registry/release.ts';
import { cohortOf } from './cohort.ts';
import type { Candidate, RouteRequest } from './route.ts';

/** Revisions of one list of candidates, which serves many requests until the next snapshot. */
interface Cohorts {
  /** Share of sessions that see a canary among the candidates. */
  readonly share: number;
  stable?: readonly Candidate[];
  canary?: readonly Candidate[];
}

const cohorts = new WeakMap<readonly Candidate[], Cohorts>();

/** Returns one candidate for each agent that may serve the session: the revision that it gets there. */
export function revisionsFor(request: RouteRequest, able: readonly Candidate[]): readonly Candidate[] {
  const { tenant, session, sticky = session, canaryShare, revision } = request;
  let cached = cohorts.get(able);
  if (!cached) {
    cached = { share: able.find(({ part }) => part === 'canary')?.share ?? 0 };
    cohorts.set(able, cached);
  }
  const cohort = cohortOf(tenant, sticky, canaryShare ?? cached.share);
  if (revision !== undefined) return onePerAgent(inCohort(cohort, revision, able));
  cached[cohort] ??= onePerAgent(inCohort(cohort, undefined, able));
  return cached[cohort];
}

/**
 * Returns the revisions that a session may get. A session stays with its own revision. A canary session falls back to
 * the stable revision; a stable session never meets a canary. The former stable revision serves until an agent has the
 * new one loaded. An agent loads a revision for a request only where no other revision that the session may get is
 * loaded.
 */
function inCohort(
  cohort: 'stable' | 'canary',
  revision: string | undefined,
  able: readonly Candidate[],
): readonly Candidate[] {
  const own = able.filter(({ model, part }) => model.revision === revision && part !== 'grey' && model.tier !== 'blob');
  if (own.length > 0) return own;
  const parts: readonly Part[] = ['canary', 'full', 'older'];
  const allowed = cohort === 'canary' ? parts : parts.slice(1);
  const groups = allowed.map((part) => able.filter((candidate) => candidate.part === part));
  const ready = groups.find((group) => group.some(({ model }) => model.tier === undefined));
  return ready ?? groups.find((group) => group.length > 0) ?? [];
}

/** Returns how far a revision is from being served; 0 when it is loaded. */
const coldness = ({ model }: Candidate): number => (model.tier === undefined ? 0 : 1 + tiers.indexOf(model.tier));

/** Leaves one revision of each agent: the warmest, then the one that came last. */
function onePerAgent(cohort: readonly Candidate[]): readonly Candidate[] {
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
  const least = candidates.reduce((so, candidate) => Math.min(so, coldness(candidate)), Number.POSITIVE_INFINITY);
  const isWarmest = (candidate: Candidate) => coldness(candidate) === least;
  return candidates.every(isWarmest) ? candidates : candidates.filter(isWarmest);
}
