// What a timer does for a tenant: finds what got lost on the way, wherever it was lost. The same steps as ever; only who
// begins them differs.
import { limits } from '../../shared/limits.ts';
import { UPLOADS, type UploadPlace, uploadBlob } from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import { gather } from '../project/gather.ts';
import { endOf, type Row } from '../store/rows.ts';
import { admit } from './arrive.ts';
import type { Office } from './office.ts';
import { dueOf, type JobRecord, jobsPrefix, rankPrefix, readJobRecord, zoneJobsPrefix } from './record.ts';
import { type Attempt, collectIn, redriveQueued } from './redrive.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { amend, readUpload, step } from './step.ts';
import { takeOutcomes } from './take-outcome.ts';
import { bookAll } from './usage.ts';

export interface Which {
  /** Also what is over; otherwise open work only. */
  readonly all: boolean;
}

/** What a sweep has found of one tenant. */
export interface Found {
  /** By zone, since when the oldest of its jobs that is not done has been wanted. */
  readonly oldest: ReadonlyMap<string, number>;
  /** Its jobs in the queues. */
  readonly queued: readonly JobRecord[];
  /** What could not be looked at; the rest was. */
  readonly failures: readonly unknown[];
}

/** Looks after a tenant. */
export async function lookAfter(office: Office, tenant: string, { all }: Which = { all: true }): Promise<Found> {
  const oldest = new Map<string, number>();
  const found: JobRecord[] = [];
  const failures: unknown[] = [];
  const attempt = collectIn(failures);
  // A job goes in the same transaction in which its upload ends: where none is open, there is none to look at.
  const open = (await office.rows.scan(tenant, 'o!', endOf('o!'), 1)).length > 0;
  if (open || all) await lookAtDue(office, tenant, attempt);
  if (all) await attempt(bookAll(office, tenant));
  if (!open) return { oldest, queued: found, failures };
  for (const zone of office.settings.ZONES) {
    const queued = await redriveQueued(office, tenant, zone, attempt);
    found.push(...queued);
    const jobs = [...queued, ...(await firstOfEach(office, tenant, zone)).map(readJobRecord)];
    if (jobs.length === 0) continue;
    oldest.set(zone, Math.min(office.now(), ...jobs.map(({ since }) => since)));
    const lanes = new Map(jobs.map(({ job }) => [jobsPrefix('w', job), job]));
    for (const lane of lanes.values()) await attempt(release(office, tenant, lane));
  }
  return { oldest, queued: found, failures };
}

async function lookAtDue(office: Office, tenant: string, attempt: Attempt): Promise<void> {
  const until = `d!${String(Math.floor(office.now()) + 1).padStart(15, '0')}`;
  const most = limits.lookDueUploads.value;
  const due = await office.rows.scan(tenant, 'd!', until, most);
  for (const { key } of due) {
    const [, , id = ''] = key.split('!');
    await attempt(lookAt(office, { tenant, id }, key, due.length === most));
  }
}

/** Of the jobs that wait the first of each model and class: an urgent one that is new must not hide an old one. */
async function firstOfEach(office: Office, tenant: string, zone: string): Promise<Row[]> {
  const prefix = zoneJobsPrefix('w', zone);
  const found: Row[] = [];
  for (let from = prefix; ; ) {
    const [row] = await office.rows.scan(tenant, from, endOf(prefix), 1);
    if (!row) return found;
    found.push(row);
    from = endOf(rankPrefix('w', readJobRecord(row).job));
  }
}

/** Looks at an upload that is due. */
async function lookAt(office: Office, place: UploadPlace, key: string, crowded: boolean): Promise<void> {
  const record = await readUpload(office, place);
  if (!record) {
    await office.rows.commit(place.tenant, [{ type: 'remove', key }]);
    return;
  }
  const { status, run } = record.state;
  if (isOver(status)) return settle(office, place);
  if (record.state.of === 'project') {
    if (await gather(office, place)) await settle(office, place);
  } else if (status === 'granted' || status === 'uploaded') {
    await admit(office, place);
    if (office.now() > record.expires && !(await office.blobs.find(UPLOADS, uploadBlob(place)))) {
      const stepped = await step(office, place, () => [{ type: 'expired' }]);
      if (stepped && isOver(stepped.record.state.status)) return settle(office, place);
    }
  } else {
    await takeOutcomes(office, place, run);
  }
  const now = office.now();
  await amend(office, place, (seen) =>
    isOver(seen.state.status) || seen.due > now ? undefined : { ...seen, due: dueOf(seen, now, crowded) },
  );
}
