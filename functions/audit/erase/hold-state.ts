// Holds as they lie there: while one does, nothing that it is about is destroyed. What is in one only the functions can
// read, and nothing in its name tells whom it is about.
import { z } from 'zod';
import type { LogStore } from '../log/log-store.ts';
import type { TenantKey } from '../sidecar/sidecar-tenant.ts';

const asker = { by: z.string().optional(), request: z.string().optional() };

const heldState = z.object({
  v: z.literal(1),
  id: z.uuid(),
  tenant: z.string(),
  /** The commitment of whom it is about; all of the tenant without one. */
  subject: z.string().optional(),
  /** By what else the same one is known: held under each, by this one act. */
  also: z.array(z.string()).optional(),
  /** Under what else somebody is held by that act, whose name this is: nothing is told of it by itself. */
  of: z.string().optional(),
  reason: z.string(),
  /** The rule or case that asks for it, by its short name. */
  basis: z.string().optional(),
  ...asker,
  /** ms since 1970. */
  at: z.number().int(),
  /** The log knows of it. */
  told: z.boolean(),
  /** Its end has begun; it holds until that is in the log. */
  release: z.object({ reason: z.string(), at: z.number().int(), ...asker }).optional(),
});
export type HoldState = z.infer<typeof heldState>;

const ALL = '@tenant';

const holdsOf = (zone: string, tenant: string): string => `${zone}/holds/${encodeURIComponent(tenant)}/`;
export const holdName = (zone: string, tenant: string, tag: string | undefined, id: string): string =>
  `${holdsOf(zone, tenant)}${tag ?? ALL}/${id}`;
export const holdsPrefix = (zone: string, tenant?: string): string =>
  tenant === undefined ? `${zone}/holds/` : holdsOf(zone, tenant);
export const tenantOfHold = (name: string): string => decodeURIComponent(name.split('/')[2] ?? '');

/** There while something of a tenant is being destroyed because its time is over. */
export const endingPrefix = (zone: string): string => `${zone}/ending/`;
export const endingName = (zone: string, tenant: string): string =>
  `${endingPrefix(zone)}${encodeURIComponent(tenant)}`;

/** Whether a subject, by its tag, must not be erased now. */
export async function isHeld(store: LogStore, zone: string, tenant: string, tag: string): Promise<boolean> {
  const prefixes = [`${holdsOf(zone, tenant)}${ALL}/`, `${holdsOf(zone, tenant)}${tag}/`];
  const found = await Promise.all(prefixes.map((prefix) => store.list('sidecar', prefix, 1)));
  return found.some((names) => names.length > 0);
}

/** Whether anything of a tenant is held: what all its records need must stay for those that are. */
export async function hasHolds(store: LogStore, zone: string, tenant: string): Promise<boolean> {
  return (await store.list('sidecar', holdsOf(zone, tenant), 1)).length > 0;
}

export interface KeptHold {
  readonly name: string;
  readonly version: string;
  readonly hold: HoldState;
}

export async function readHold(store: LogStore, key: TenantKey, name: string): Promise<KeptHold | undefined> {
  const kept = await store.read('sidecar', name);
  return kept && { name, version: kept.version, hold: heldState.parse(await key.open(kept.bytes, name)) };
}
