// Stored holds: nothing that one covers is destroyed. Only the functions can read their content, and their
// names do not reveal the subject.
import { z } from 'zod';
import type { LogStore } from '../log/log-store.ts';
import type { TenantKey } from '../sidecar/sidecar-tenant.ts';

const officer = { by: z.string().optional(), request: z.string().optional() };

const heldState = z.object({
  v: z.literal(1),
  id: z.uuid(),
  tenant: z.string(),
  /** The commitment of the subject; without one the hold covers the tenant. */
  subject: z.string().optional(),
  /** Further commitments of the subject, held by the same act. */
  also: z.array(z.string()).optional(),
  /** The hold that this one belongs to; it is not reported by itself. */
  of: z.string().optional(),
  reason: z.string(),
  /** Short name of the rule or case that requires it. */
  basis: z.string().optional(),
  ...officer,
  /** ms since 1970. */
  at: z.number().int(),
  /** The log knows of it. */
  told: z.boolean(),
  /** Its release has begun; it holds until the log has the release. */
  release: z.object({ reason: z.string(), at: z.number().int(), ...officer }).optional(),
});
export type HoldState = z.infer<typeof heldState>;

const ALL = '@tenant';

const holdsOf = (zone: string, tenant: string): string => `${zone}/holds/${encodeURIComponent(tenant)}/`;
export const holdName = (zone: string, tenant: string, tag: string | undefined, id: string): string =>
  `${holdsOf(zone, tenant)}${tag ?? ALL}/${id}`;
export const holdsPrefix = (zone: string, tenant?: string): string =>
  tenant === undefined ? `${zone}/holds/` : holdsOf(zone, tenant);
export const tenantOfHold = (name: string): string => decodeURIComponent(name.split('/')[2] ?? '');

/** Exists while expired records of a tenant are destroyed. */
export const endingPrefix = (zone: string): string => `${zone}/ending/`;
export const endingName = (zone: string, tenant: string): string =>
  `${endingPrefix(zone)}${encodeURIComponent(tenant)}`;

/** Reports whether a hold covers a subject, given by its tag. */
export async function isHeld(store: LogStore, zone: string, tenant: string, tag: string): Promise<boolean> {
  const prefixes = [`${holdsOf(zone, tenant)}${ALL}/`, `${holdsOf(zone, tenant)}${tag}/`];
  const found = await Promise.all(prefixes.map((prefix) => store.list('sidecar', prefix, 1)));
  return found.some((names) => names.length > 0);
}

/** Reports whether any hold covers a part of a tenant, so that secrets common to its records stay. */
export async function hasHolds(store: LogStore, zone: string, tenant: string): Promise<boolean> {
  return (await store.list('sidecar', holdsOf(zone, tenant), 1)).length > 0;
}

/** Reports whether any hold stands in one of the zones. */
export async function isAnyHeld(store: Pick<LogStore, 'list'>, zones: readonly string[]): Promise<boolean> {
  const found = await Promise.all(zones.map((zone) => store.list('sidecar', holdsPrefix(zone), 1)));
  return found.some((names) => names.length > 0);
}

export interface StoredHold {
  readonly name: string;
  readonly version: string;
  readonly hold: HoldState;
}

export async function readHold(store: LogStore, key: TenantKey, name: string): Promise<StoredHold | undefined> {
  const stored = await store.read('sidecar', name);
  return stored && { name, version: stored.version, hold: heldState.parse(await key.open(stored.bytes, name)) };
}
