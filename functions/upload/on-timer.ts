// Looks after all tenants that have uploads: open work three times a minute, all of it each minute, when a line of the
// log also says how deep the queues are and how old the oldest work is.

import { limits } from '../../shared/limits.ts';
import { type Found, lookAfter, type Which } from './look-after.ts';
import type { Office } from './office.ts';
import type { JobRecord } from './record.ts';
import { collectIn, resendLost } from './redrive.ts';
import { forgetTenant, listTenants } from './tenants.ts';

/** Each minute. */
export async function onStalled(office: Office): Promise<void> {
  const { oldest, failures } = await sweep(office, { all: true });
  for (const zone of office.settings.ZONES) {
    const depth = await office.jobs.depth(zone).catch(() => undefined);
    if (!depth) continue;
    const since = oldest.get(zone);
    const isEmpty = depth.waiting + depth.taken === 0;
    const oldestSeconds = since === undefined || isEmpty ? undefined : Math.round((office.now() - since) / 1_000);
    office.log({ what: 'queue', zone, ...depth, ...(oldestSeconds !== undefined && { oldestSeconds }) });
  }
  if (failures.length > 0) throw failures[0];
}

/** Between the minutes. A tenant without open work costs one query. */
export async function onLost(office: Office): Promise<void> {
  const { failures } = await sweep(office, { all: false });
  if (failures.length > 0) throw failures[0];
}

async function sweep(office: Office, which: Which): Promise<Found> {
  const tenants = await listTenants(office, limits.lookTenants.value);
  const failures: unknown[] = [];
  const attempt = collectIn(failures);
  const oldest = new Map<string, number>();
  const queued: JobRecord[] = [];
  const work = tenants.values();
  const walk = async () => {
    for (const tenant of work) {
      await attempt(
        lookAfter(office, tenant, which).then((found) => {
          for (const [zone, since] of found.oldest) oldest.set(zone, Math.min(since, oldest.get(zone) ?? since));
          queued.push(...found.queued);
          failures.push(...found.failures);
        }),
      );
      if (which.all) await attempt(forgetTenant(office, tenant));
    }
  };
  await Promise.all(Array.from({ length: limits.lookTenantsAtOnce.value }, walk));
  const queueOf = ({ job: { zone, model, light } }: JobRecord) => JSON.stringify([zone, model, light]);
  for (const records of Map.groupBy(queued, queueOf).values()) await attempt(resendLost(office, records, attempt));
  return { oldest, queued, failures };
}
