// The release map: the serving revision of each model, and the one on trial for a share of the sessions. The
// functions derive it from the logs of the models, sign it and send it to the edge, whose rosters put it into
// every snapshot.
import { z } from 'zod';
import { KiB } from '../bytes.ts';
import { modelsByName } from './names.ts';
import { type Registry, STABLE } from './registry.ts';
import { modelName, revisionDigest } from './revision.ts';
import { canaryShare } from './stage.ts';

/** Revisions of a model that get copies of its traffic at the same time. */
export const GREY_REVISIONS_MAX = 4;
/**
 * Default share of requests that grey revisions get copies of: 200 come together quickly, and a trial pool is
 * small.
 */
const MIRROR_SHARE = 0.1;
/**
 * Models of the release map, part of every registry snapshot: 50 KiB of digests, 140 with long names,
 * canaries and grey revisions.
 */
export const MODEL_NAMES_MAX = 200;
/** Signed release map in base64, with the most models and names and everything it can state of each. */
export const RELEASE_BYTES = 224 * KiB;

/** `typ` of the compact JWS (ES256, key of the functions). */
export const RELEASE_TYPE = 'auricle-release+jws';

export const modelRelease = z.object({
  /**
   * Revision of the alias `stable`, and its former one, which continues where no agent has the new one yet.
   * `before` equals `stable` when the former revision has left the stage `full` since and must not serve.
   */
  stable: revisionDigest.optional(),
  before: revisionDigest.optional(),
  canary: z.object({ revision: revisionDigest, share: canaryShare }).optional(),
  /** Revisions that get a copy of a share of the requests; their answers are discarded. */
  grey: z
    .object({ revisions: z.array(revisionDigest).max(GREY_REVISIONS_MAX), share: z.number().min(0).max(1) })
    .optional(),
});
export type ModelRelease = z.infer<typeof modelRelease>;

export const releaseMap = z.object({
  v: z.literal(1),
  /** Rises with every change; an edge never goes back to a lower one. */
  generation: z.number().int().nonnegative(),
  models: z
    .record(modelName, modelRelease)
    .refine((models) => Object.keys(models).length <= MODEL_NAMES_MAX, 'has too many models'),
  names: modelsByName.optional(),
});
export type ReleaseMap = z.infer<typeof releaseMap>;

/** Signed map as sent: `PUT /v1/release`. */
export const sentRelease = z.object({ release: z.string().max(RELEASE_BYTES) });

/**
 * Builds a model's entry. `mirror`: share of the requests that grey revisions get a copy of. The entry is
 * empty while `stable` names nothing: revisions that agents serve without a log then go on, even while they
 * pass the gates for the first time.
 */
export function releaseOf({ revisions, aliases }: Registry, mirror: number = MIRROR_SHARE): ModelRelease {
  const [stable, trial] = [
    aliases[STABLE],
    Object.entries(revisions).find(([, one]) => one.standing.share !== undefined),
  ];
  if (!stable) return {};
  const share = trial?.[1].standing.share;
  const grey = Object.entries(revisions)
    .filter(([, one]) => one.standing.stage === 'grey')
    .sort(([, one], [, other]) => one.since - other.since)
    .slice(0, GREY_REVISIONS_MAX);
  return {
    stable: stable.revision,
    ...(stable.before !== undefined && {
      before: revisions[stable.before]?.standing.stage === 'full' ? stable.before : stable.revision,
    }),
    ...(trial && share !== undefined && { canary: { revision: trial[0], share } }),
    ...(grey.length > 0 && mirror > 0 && { grey: { revisions: grey.map(([revision]) => revision), share: mirror } }),
  };
}

/** Returns the newest of the maps that several rosters hold. */
export const newestRelease = (maps: readonly (ReleaseMap | undefined)[]): ReleaseMap | undefined =>
  maps.reduce((newest, one) => ((one?.generation ?? -1) > (newest?.generation ?? -1) ? one : newest), undefined);

/**
 * Part of a revision that an agent serves: `older` serves where no `full` one does, `grey` serves no caller.
 */
export type Part = 'full' | 'canary' | 'older' | 'grey';

/**
 * Returns the part of a revision, from the map or, where it has no entry, from the agent's own stage.
 * `undefined`: it serves no caller. While no agent has a first `stable`, the agents' own stages decide:
 * naming an alias must not take away a serving revision.
 */
export function partOf(
  release: ModelRelease | undefined,
  { revision, stage }: { readonly revision: string; readonly stage: string },
): Part | undefined {
  const own = stage === 'full' || stage === 'canary' ? stage : undefined;
  if (!release) return own;
  if (revision === release.stable) return 'full';
  if (revision === release.canary?.revision) return 'canary';
  if (release.grey?.revisions.includes(revision)) return 'grey';
  if (release.stable === undefined) return own === 'full' ? 'full' : undefined;
  return revision === release.before || (release.before === undefined && own === 'full') ? 'older' : undefined;
}
