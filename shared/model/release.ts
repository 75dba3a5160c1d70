// The release map: which revision answers whoever names a model, and which one is tried on a share of the sessions. The
// functions make it of the logs of the models, sign it and tell the edge, whose rosters put it into every snapshot.
import { z } from 'zod';
import { limits } from '../limits.ts';
import { type Registry, STABLE } from './registry.ts';
import { modelName, revisionDigest } from './revision.ts';
import { canaryShare } from './stage.ts';

/** `typ` of the compact JWS, ES256, by the functions' key. */
export const RELEASE_TYPE = 'auricle-release+jws';

export const modelRelease = z.object({
  /**
   * What `stable` names, and what it named before: that goes on where nobody has the new one yet. `before` is `stable` itself
   * when what it named has left the stage `full` since, and may answer nobody.
   */
  stable: revisionDigest.optional(),
  before: revisionDigest.optional(),
  canary: z.object({ revision: revisionDigest, share: canaryShare }).optional(),
  /** Those that get a copy of a share of the requests, and whose answers nobody sees. */
  grey: z
    .object({ revisions: z.array(revisionDigest).max(limits.greyRevisions.value), share: z.number().min(0).max(1) })
    .optional(),
});
export type ModelRelease = z.infer<typeof modelRelease>;

export const releaseMap = z.object({
  v: z.literal(1),
  /** Rises with every change; an edge never goes back to a lower one. */
  generation: z.number().int().nonnegative(),
  models: z
    .record(modelName, modelRelease)
    .refine((models) => Object.keys(models).length <= limits.modelNames.value, 'has too many models'),
});
export type ReleaseMap = z.infer<typeof releaseMap>;

/** What is signed and sent: `PUT /v1/release`. */
export const sentRelease = z.object({ release: z.string().max(limits.releaseBytes.value) });

/**
 * `mirror`: share of the requests of which grey revisions get a copy. Nothing is said while nothing is `stable`: what is
 * served without a log goes on then, also while it is itself on its way through the gates for the first time.
 */
export function releaseOf({ revisions, aliases }: Registry, mirror: number = limits.mirrorShare.value): ModelRelease {
  const [stable, trial] = [
    aliases[STABLE],
    Object.entries(revisions).find(([, one]) => one.standing.share !== undefined),
  ];
  if (!stable) return {};
  const share = trial?.[1].standing.share;
  const grey = Object.entries(revisions)
    .filter(([, one]) => one.standing.stage === 'grey')
    .sort(([, one], [, other]) => one.since - other.since)
    .slice(0, limits.greyRevisions.value);
  return {
    stable: stable.revision,
    ...(stable.before !== undefined && {
      before: revisions[stable.before]?.standing.stage === 'full' ? stable.before : stable.revision,
    }),
    ...(trial && share !== undefined && { canary: { revision: trial[0], share } }),
    ...(grey.length > 0 && mirror > 0 && { grey: { revisions: grey.map(([revision]) => revision), share: mirror } }),
  };
}

/** The newest of those that several rosters know. */
export const newestRelease = (maps: readonly (ReleaseMap | undefined)[]): ReleaseMap | undefined =>
  maps.reduce((newest, one) => ((one?.generation ?? -1) > (newest?.generation ?? -1) ? one : newest), undefined);

/** How a revision that an agent serves counts: `older` answers where no `full` one does, `grey` answers nobody. */
export type Part = 'full' | 'canary' | 'older' | 'grey';

/**
 * By what the map says, or by what the agent says where the map says nothing. `undefined`: it answers nobody. A first
 * `stable` that no agent has yet leaves the word to the agents: naming it must not take away what is there.
 */
export function partOf(
  release: ModelRelease | undefined,
  { revision, stage }: { readonly revision: string; readonly stage: string },
): Part | undefined {
  const told = stage === 'full' || stage === 'canary' ? stage : undefined;
  if (!release) return told;
  if (revision === release.stable) return 'full';
  if (revision === release.canary?.revision) return 'canary';
  if (release.grey?.revisions.includes(revision)) return 'grey';
  if (release.stable === undefined) return told === 'full' ? 'full' : undefined;
  return revision === release.before || (release.before === undefined && told === 'full') ? 'older' : undefined;
}
