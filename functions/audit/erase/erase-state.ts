// A pending erasure, from its request until the log has its end.
import { z } from 'zod';
import type { LogStore } from '../log/log-store.ts';
import type { SubjectPlace } from '../sidecar/sidecar-subject.ts';

const erasureState = z.object({
  v: z.literal(1),
  tenant: z.string(),
  /** The commitment of the subject. */
  subject: z.string(),
  /** Short name of the rule that requires it. */
  basis: z.string(),
  by: z.string().optional(),
  request: z.string().optional(),
  /** ms since 1970. */
  at: z.number().int(),
  /**
   * Secrets to destroy: the subject's numbers up to now, each with its name in the log and the number of
   * indexed records. Records made after the request have another number and are not erased.
   */
  parts: z.array(z.object({ sid: z.string(), erased: z.string(), count: z.number().int().optional() })),
  /** Set before the last check of holds: a later hold waits. */
  destroying: z.boolean().optional(),
  /** The reason of deferral, as reported to the log. */
  deferred: z.object({ basis: z.string(), until: z.number().int().optional() }).optional(),
});
export type ErasureState = z.infer<typeof erasureState>;

export const erasuresPrefix = (zone: string, tenant?: string): string =>
  tenant === undefined ? `${zone}/erasures/` : `${zone}/erasures/${encodeURIComponent(tenant)}/`;
export const erasureName = (zone: string, tenant: string, tag: string): string =>
  `${erasuresPrefix(zone, tenant)}${tag}`;
export const tenantOfErasure = (name: string): string => decodeURIComponent(name.split('/')[2] ?? '');

export interface StoredErasure {
  readonly name: string;
  readonly version: string;
  readonly state: ErasureState;
}

export async function readErasure({ store, key }: SubjectPlace, name: string): Promise<StoredErasure | undefined> {
  const stored = await store.read('sidecar', name);
  return stored && { name, version: stored.version, state: erasureState.parse(await key.open(stored.bytes, name)) };
}

/** Writes the new state; returns `false` after a lost race or when the outcome is unknown. */
export async function writeErasure(
  { key }: SubjectPlace,
  store: LogStore,
  { name, state }: Pick<StoredErasure, 'name' | 'state'>,
  before: StoredErasure | undefined,
): Promise<boolean> {
  const box = await key.seal(state, name);
  return before ? store.replace('sidecar', name, box, before.version) : store.create('sidecar', name, box);
}
