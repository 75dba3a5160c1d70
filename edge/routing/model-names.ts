import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { DEFAULT_NAME, modelNamed } from '../../shared/registry/names.ts';
import { newestRelease } from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { chooseMember, type FamilyRequest, type Target } from './family.ts';
import { readSnapshots } from './snapshot.ts';

/**
 * Returns the model for the name in a request, and the default for a request without one; `undefined` where there is no
 * default. A name without a model names itself, and so does a registered model.
 */
export type ModelNames = (requested: string | undefined) => string | undefined;

/** Names of a tenant, as the release map of the snapshots has them. */
export function modelNames(snapshots: readonly Snapshot[], tenant: string): ModelNames {
  const { models = {}, names = {} } = newestRelease(snapshots.map(({ release }) => release)) ?? {};
  return (requested) => {
    if (requested !== undefined && Object.hasOwn(models, requested)) return requested;
    return modelNamed(names, requested || DEFAULT_NAME, tenant) ?? (requested || undefined);
  };
}

type NamesContext = Pick<RequestContext, 'settings' | 'env' | 'runtime'>;

export async function readModelNames(
  { tenant }: Pick<Claims, 'tenant'>,
  { settings, env, runtime }: NamesContext,
): Promise<ModelNames> {
  return modelNames(await readSnapshots(settings.zones, env.ROSTER, runtime), tenant);
}

/**
 * Returns the model that serves a request, and notes it for the header `x-auricle-model`. Refuses a request that names
 * no model where there is no default.
 */
export function resolveModel(
  requested: string | undefined,
  names: ModelNames,
  context: Pick<RequestContext, 'model'>,
): Result<string> {
  const model = names(requested);
  if (model === undefined) return no(refuse('field_missing', { field: 'model' }));
  context.model = model;
  return ok(model);
}

/** Resolves a model or family to the member that serves it, and notes the member for the header `x-auricle-model`. */
export async function resolveTarget(
  request: Omit<FamilyRequest, 'allowed' | 'zones'>,
  { languages: allowed, zones }: Pick<Claims, 'languages' | 'zones'>,
  context: NamesContext & Pick<RequestContext, 'model'>,
): Promise<Result<Target>> {
  const { settings, env, runtime } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const target = chooseMember({ ...request, allowed, zones }, snapshots, runtime.now());
  if (target.ok) context.model = target.value.model;
  return target;
}
