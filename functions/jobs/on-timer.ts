// Looks after all tenants that have uploads: open work three times a minute, all of it each minute, when a line of the
// log also says how deep the queues are and how old the oldest work is.

import { limits } from '../../shared/limits.ts';
import type { JobContext } from './context.ts';
import type { JobRecord } from './record.ts';
import { collectIn, resendLost } from './redrive.ts';
import { type SweepScope, type Swept, sweepTenant } from './sweep-tenant.ts';
import { forgetTenant, listTenants } from './tenants.ts';

/** Each minute. */
export async function onStalled(context: JobContext): Promise<void> {
  const { oldest, failures } = await sweep(context, { all: true });
  for (const zone of context.settings.ZONES) {
    const depth = await context.jobs.depth(zone).catch(() => undefined);
    if (!depth) continue;
    const since = oldest.get(zone);
    const isEmpty = depth.waiting + depth.taken === 0;
    const oldestSeconds = since === undefined || isEmpty ? undefined : Math.round((context.now() - since) / 1_000);
    context.log({ what: 'queue', zone, ...depth, ...(oldestSeconds !== undefined && { oldestSeconds }) });
  }
  if (failures.length > 0) throw failures[0];
}

/** Between the minutes. A tenant without open work costs one query. */
export async function onLost(context: JobContext): Promise<void> {
  const { failures } = await sweep(context, { all: false });
  if (failures.length > 0) throw failures[0];
}

async function sweep(context: JobContext, which: SweepScope): Promise<Swept> {
  const tenants = await listTenants(context, limits.lookTenants.value);
  const failures: unknown[] = [];
  const attempt = collectIn(failures);
  const oldest = new Map<string, number>();
  const queued: JobRecord[] = [];
  const work = tenants.values();
  const walk = async () => {
    for (const tenant of work) {
      await attempt(
        sweepTenant(context, tenant, which).then((found) => {
          for (const [zone, since] of found.oldest) oldest.set(zone, Math.min(since, oldest.get(zone) ?? since));
          queued.push(...found.queued);
          failures.push(...found.failures);
        }),
      );
      if (which.all) await attempt(forgetTenant(context, tenant));
    }
  };
  await Promise.all(Array.from({ length: limits.lookTenantsAtOnce.value }, walk));
  const queueOf = ({ job: { zone, model, light } }: JobRecord) => JSON.stringify([zone, model, light]);
  for (const records of Map.groupBy(queued, queueOf).values()) await attempt(resendLost(context, records, attempt));
  return { oldest, queued, failures };
}
