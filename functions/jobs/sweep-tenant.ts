// Sweeps a tenant: finds lost events, jobs and notices, and performs their steps.

import { UPLOADS, type UploadPlace, uploadBlob } from '../../shared/jobs/paths.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { endOf, type Row } from '../store/rows.ts';
import { admitUpload } from './admit.ts';
import type { JobContext } from './context.ts';
import { gather } from './gather.ts';
import { dueOf, type JobRecord, jobsPrefix, rankPrefix, readJobRecord, zoneJobsPrefix } from './record.ts';
import { type Attempt, collectIn, redriveQueued } from './redrive.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { amend, readUpload, step } from './step.ts';
import { takeOutcomes } from './take-outcome.ts';
import { bookAll } from './usage.ts';

/** Due uploads of a tenant that one sweep handles; the next one continues. */
const SWEEP_DUE_UPLOADS_MAX = 200;

export interface SweepScope {
  /** Also what is over; otherwise open work only. */
  readonly all: boolean;
}

/** Findings of a sweep of one tenant. */
export interface Swept {
  /** By zone: start of the oldest wanted job. */
  readonly oldest: ReadonlyMap<string, number>;
  /** Queued jobs of the tenant. */
  readonly queued: readonly JobRecord[];
  /** Failures; the sweep continued after each. */
  readonly failures: readonly unknown[];
}

/** Looks after a tenant. */
export async function sweepTenant(
  context: JobContext,
  tenant: string,
  { all }: SweepScope = { all: true },
): Promise<Swept> {
  const oldest = new Map<string, number>();
  const found: JobRecord[] = [];
  const failures: unknown[] = [];
  const attempt = collectIn(failures);
  // A job goes in the same transaction in which its upload ends: where none is open, there is none to look at.
  const open = (await context.rows.scan(tenant, 'o!', endOf('o!'), 1)).length > 0;
  if (open || all) await lookAtDue(context, tenant, attempt);
  if (all) await attempt(bookAll(context, tenant));
  if (!open) return { oldest, queued: found, failures };
  for (const zone of context.settings.ZONES) {
    const queued = await redriveQueued(context, tenant, zone, attempt);
    found.push(...queued);
    const jobs = [...queued, ...(await firstOfEach(context, tenant, zone)).map(readJobRecord)];
    if (jobs.length === 0) continue;
    oldest.set(zone, Math.min(context.now(), ...jobs.map(({ since }) => since)));
    const lanes = new Map(jobs.map(({ job }) => [jobsPrefix('w', job), job]));
    for (const lane of lanes.values()) await attempt(release(context, tenant, lane));
  }
  return { oldest, queued: found, failures };
}

async function lookAtDue(context: JobContext, tenant: string, attempt: Attempt): Promise<void> {
  const until = `d!${String(Math.floor(context.now()) + 1).padStart(15, '0')}`;
  const most = SWEEP_DUE_UPLOADS_MAX;
  const due = await context.rows.scan(tenant, 'd!', until, most);
  for (const { key } of due) {
    const [, , id = ''] = key.split('!');
    await attempt(lookAt(context, { tenant, id }, key, due.length === most));
  }
}

/** Returns the first waiting job of each model and class: a new urgent one must not hide an old one. */
async function firstOfEach(context: JobContext, tenant: string, zone: string): Promise<Row[]> {
  const prefix = zoneJobsPrefix('w', zone);
  const found: Row[] = [];
  for (let from = prefix; ; ) {
    const [row] = await context.rows.scan(tenant, from, endOf(prefix), 1);
    if (!row) return found;
    found.push(row);
    from = endOf(rankPrefix('w', readJobRecord(row).job));
  }
}

/** Looks at an upload that is due. */
async function lookAt(context: JobContext, place: UploadPlace, key: string, crowded: boolean): Promise<void> {
  const record = await readUpload(context, place);
  if (!record) {
    await context.rows.commit(place.tenant, [{ type: 'remove', key }]);
    return;
  }
  const { status, run } = record.state;
  if (isOver(status)) return settle(context, place);
  if (record.state.of === 'project') {
    if (await gather(context, place)) await settle(context, place);
  } else if (status === 'granted' || status === 'uploaded') {
    await admitUpload(context, place);
    if (context.now() > record.expires && !(await context.blobs.find(UPLOADS, uploadBlob(place)))) {
      const stepped = await step(context, place, () => [{ type: 'expired' }]);
      if (stepped && isOver(stepped.record.state.status)) return settle(context, place);
    }
  } else {
    await takeOutcomes(context, place, run);
  }
  const now = context.now();
  await amend(context, place, (seen) =>
    isOver(seen.state.status) || seen.due > now ? undefined : { ...seen, due: dueOf(seen, now, crowded) },
  );
}
