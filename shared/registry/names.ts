// Names under which requests find models: `whisper-1` of an official client, or a default. A tenant's name precedes the
// fleet's. Names have a log of their own, and the release map carries them to the edge.
import { z } from 'zod';
import { tenantName } from '../names.ts';
import { modelName } from './revision.ts';

/** Names of a fleet and its tenants: 20 KiB of the release map when each is as long as it may be. */
export const NAMES_MAX = 100;
/** Name of their log, which no model can have. */
export const NAMES_LOG = '@names';
/** Name of requests that name no model. */
export const DEFAULT_NAME = 'default';

/** Name of a model in a request: a model, or a name for one. */
export const requestedModel = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,62}$/, 'must be the name of a model, as GET /v1/models lists it');

export const namedModel = z.object({
  name: requestedModel,
  tenant: tenantName.optional().describe('Absent for a name of the whole fleet'),
  model: modelName,
  since: z.number().int(),
});
export type NamedModel = z.infer<typeof namedModel>;

/** Models by `keyOfName`, as the release map carries them. */
export const modelsByName = z.record(z.string(), modelName);
export type ModelsByName = z.infer<typeof modelsByName>;

/** Neither tenants nor names contain a space. */
export const keyOfName = (name: string, tenant?: string): string => (tenant === undefined ? name : `${tenant} ${name}`);

/** Returns the name of a key that a tenant may use; `undefined` for a name of another tenant. */
export function nameOfKey(key: string, tenant: string): string | undefined {
  const [first = '', name] = key.split(' ');
  if (name === undefined) return first;
  return first === tenant ? name : undefined;
}

/** Returns the model of a name for a tenant; `undefined` for a name without one. */
export function modelNamed(names: ModelsByName, name: string, tenant: string): string | undefined {
  const key = [keyOfName(name, tenant), name].find((one) => Object.hasOwn(names, one));
  return key === undefined ? undefined : names[key];
}
