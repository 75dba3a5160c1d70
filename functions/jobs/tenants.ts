// Tenants that have uploads: what the timer goes through. Kept so that a tenant is never missing from it while it has a
// row: it is put there before its first row, and taken away long after its last.
import { DAY_MS } from '../../shared/day.ts';
import { endOf } from '../store/rows.ts';
import type { JobContext } from './context.ts';

/** A partition no tenant can be named after. */
const PARTITION = '!tenants';
/** Time for which an instance caches that a tenant's row exists. Far less than a day, see below. */
const KNOWN_MS = DAY_MS / 24;
const touched = new WeakMap<JobContext, Map<string, number>>();

export async function touchTenant(context: JobContext, tenant: string): Promise<void> {
  const known = touched.get(context) ?? new Map<string, number>();
  touched.set(context, known);
  const now = context.now();
  if ((known.get(tenant) ?? 0) + KNOWN_MS > now) return;
  await context.rows.commit(PARTITION, [{ type: 'put', key: tenant, value: { touched: now } }]);
  known.set(tenant, now);
}

export async function listTenants(context: JobContext, limit: number): Promise<string[]> {
  return (await context.rows.scan(PARTITION, '0', endOf('z'), limit)).map(({ key }) => key);
}

/** Takes a tenant away that has no row and was not put there for a day: no instance still relies on it. */
export async function forgetTenant(context: JobContext, tenant: string): Promise<void> {
  const row = await context.rows.read(PARTITION, tenant);
  if (!row || Number(row.value.touched) + DAY_MS > context.now()) return;
  // Rows that are due, and usage that the edge has not booked.
  for (const kind of ['d!', 'b!']) if ((await context.rows.scan(tenant, kind, endOf(kind), 1)).length > 0) return;
  await context.rows.commit(PARTITION, [{ type: 'remove', key: tenant }]);
}
