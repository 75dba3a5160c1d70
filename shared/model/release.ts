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
  /** What `stable` names, and what it named before: that goes on where nobody has the new one yet. */
  stable: revisionDigest.optional(),
  before: revisionDigest.optional(),
  canary: z.object({ revision: revisionDigest, share: canaryShare }).optional(),
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
export const sentRelease = z.object({ release: z.string().max(limits.modelBodyBytes.value) });

export function releaseOf({ revisions, aliases }: Registry): ModelRelease {
  const [stable, trial] = [
    aliases[STABLE],
    Object.entries(revisions).find(([, one]) => one.standing.share !== undefined),
  ];
  const share = trial?.[1].standing.share;
  return {
    ...(stable && { stable: stable.revision }),
    ...(stable?.before !== undefined && { before: stable.before }),
    ...(trial && share !== undefined && { canary: { revision: trial[0], share } }),
  };
}

/** The newest of those that several rosters know. */
export const newestRelease = (maps: readonly (ReleaseMap | undefined)[]): ReleaseMap | undefined =>
  maps.reduce((newest, one) => ((one?.generation ?? -1) > (newest?.generation ?? -1) ? one : newest), undefined);

/** How a revision that an agent serves counts: `older` answers where no `full` one does. */
export type Part = 'full' | 'canary' | 'older';

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
  if (release.stable === undefined) return told === 'full' ? 'full' : undefined;
  return revision === release.before || (release.before === undefined && told === 'full') ? 'older' : undefined;
}
