// Looks after all tenants that have uploads: open work three times a minute, all of it each minute, when a line of the
// log also says how deep the queues are and how old the oldest work is.

import type { JobContext } from './context.ts';
import type { JobRecord } from './record.ts';
import { collectIn, resendLost } from './redrive.ts';
import { type SweepScope, type Swept, sweepTenant } from './sweep-tenant.ts';
import { forgetTenant, listTenants } from './tenants.ts';

/** Tenants of one sweep: their names are in memory together, some ten megabytes. */
const SWEEP_TENANTS_MAX = 100_000;
/** Tenants swept concurrently: a slow one does not hold up all others, and the table is not flooded. */
const SWEEP_TENANTS_CONCURRENT_MAX = 4;

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
  const tenants = await listTenants(context, SWEEP_TENANTS_MAX);
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
  await Promise.all(Array.from({ length: SWEEP_TENANTS_CONCURRENT_MAX }, walk));
  const queueOf = ({ job: { zone, model, light } }: JobRecord) => JSON.stringify([zone, model, light]);
  for (const records of Map.groupBy(queued, queueOf).values()) await attempt(resendLost(context, records, attempt));
  return { oldest, queued, failures };
}
