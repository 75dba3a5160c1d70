// Every minute: look after all tenants that have uploads, and say how deep the queues are and how
// old the oldest work is.

import { limits } from '../../shared/limits.ts';
import { lookAfter } from './look-after.ts';
import type { Office } from './office.ts';
import { forgetTenant, listTenants } from './tenants.ts';

export async function onStalled(office: Office): Promise<void> {
  const tenants = await listTenants(office, limits.lookTenants.value);
  const failures: unknown[] = [];
  const oldest = new Map<string, number>();
  const work = tenants.values();
  const walk = async () => {
    for (const tenant of work) {
      // One tenant's trouble must not keep the others from being looked after.
      const found = await lookAfter(office, tenant).catch((error: unknown) => void failures.push(error));
      for (const [zone, since] of found ?? []) oldest.set(zone, Math.min(since, oldest.get(zone) ?? since));
      await forgetTenant(office, tenant).catch((error) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: limits.lookTenantsAtOnce.value }, walk));
  for (const zone of office.settings.ZONES) {
    const depth = await office.jobs.depth(zone).catch(() => undefined);
    if (!depth) continue;
    const now = office.now();
    const oldestSeconds = Math.round((now - (oldest.get(zone) ?? now)) / 1_000);
    office.log({ what: 'queue', zone, ...depth, oldestSeconds });
  }
  if (failures.length > 0) throw failures[0];
}
