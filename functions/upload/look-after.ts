// What a timer does for a tenant: finds what got lost on the way, wherever it was lost. The same steps as ever; only who
// begins them differs.
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import type { UploadJob } from '../../shared/upload/job.ts';
import { UPLOADS, type UploadPlace, uploadBlob } from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import { gather } from '../project/gather.ts';
import { endOf, type Row } from '../store/rows.ts';
import { admit } from './arrive.ts';
import type { Office } from './office.ts';
import { dueOf, type JobRecord, jobsPrefix, MINUTE, rankPrefix, readJobRecord, zoneJobsPrefix } from './record.ts';
import { note, release, send } from './release.ts';
import { settle } from './settle.ts';
import { amend, readUpload, step } from './step.ts';
import { takeOutcomes } from './take-outcome.ts';
import { bookAll } from './usage.ts';

const UNTAKEN_MS = limits.uploadUntakenHours.value * 60 * MINUTE;

/** @returns by zone, since when the oldest of its jobs that is not done has been wanted. */
export async function lookAfter(office: Office, tenant: string): Promise<Map<string, number>> {
  const now = office.now();
  const until = `d!${String(Math.floor(now) + 1).padStart(15, '0')}`;
  for (const { key } of await office.rows.scan(tenant, 'd!', until, limits.lookDueUploads.value)) {
    const [, , id = ''] = key.split('!');
    await lookAt(office, { tenant, id }, key);
  }
  await bookAll(office, tenant);
  const oldest = new Map<string, number>();
  // A job goes in the same transaction in which its upload ends: where none is open, there is none to look at.
  if ((await office.rows.scan(tenant, 'o!', endOf('o!'), 1)).length === 0) return oldest;
  for (const zone of office.settings.ZONES) {
    const queued = await lookAtQueued(office, tenant, zone);
    const jobs = [...queued, ...(await firstOfEach(office, tenant, zone))].map(readJobRecord);
    if (jobs.length === 0) continue;
    oldest.set(zone, Math.min(now, ...jobs.map(({ since }) => since)));
    const lanes = new Map(jobs.map(({ job }) => [jobsPrefix('w', job), job]));
    for (const lane of lanes.values()) await release(office, tenant, lane);
  }
  return oldest;
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

/** An upload whose time has come. */
async function lookAt(office: Office, place: UploadPlace, key: string): Promise<void> {
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
    isOver(seen.state.status) || seen.due > now ? undefined : { ...seen, due: dueOf(seen, now) },
  );
}

/** Jobs in the queue that have shown nothing for a while. @returns all that are there. */
async function lookAtQueued(office: Office, tenant: string, zone: string): Promise<readonly Row[]> {
  const prefix = zoneJobsPrefix('q', zone);
  const rows = await office.rows.scan(tenant, prefix, endOf(prefix), limits.lookQueuedUploads.value);
  const quiet = rows.filter((row) => lastSign(readJobRecord(row)) + MINUTE <= office.now());
  for (const [id, [first]] of Map.groupBy(quiet, (row) => readJobRecord(row).job.upload)) {
    // Its outcome may be there, and only the event was lost.
    if (first) await takeOutcomes(office, { tenant, id }, readJobRecord(first).job.run);
  }
  for (const { key } of quiet) {
    const row = await office.rows.read(tenant, key);
    if (row) await push(office, tenant, row);
  }
  return rows;
}

const lastSign = ({ since, queued, sent, opened }: JobRecord): number => opened ?? sent ?? queued ?? since;

/** Sends a job again that was never sent, or was taken and left, or that the queue may have lost. */
async function push(office: Office, tenant: string, row: Row): Promise<void> {
  const record = readJobRecord(row);
  const { job, since, queued = since, sent, opened } = record;
  const place = { tenant, id: job.upload };
  const now = office.now();
  const upload = await readUpload(office, place);
  if (!upload || isOver(upload.state.status) || upload.state.run !== job.run) {
    await office.rows.commit(tenant, [{ type: 'remove', key: row.key }]);
    return;
  }
  if (opened === undefined && queued + UNTAKEN_MS <= now) return giveUp(office, tenant, job);
  if (sent === undefined) return send(office, tenant, [record]);
  if (opened === undefined) {
    if (job.light && sent + limits.projectLightMs.value <= now) return again(office, tenant, record, heavy(job));
    if (sent + limits.uploadQueueLostMs.value <= now) await again(office, tenant, record, job);
    return;
  }
  if (opened + limits.uploadStalledMs.value > now) return;
  if (job.attempt < limits.uploadJobTries.value) {
    return again(office, tenant, record, heavy({ ...job, attempt: job.attempt + 1 }));
  }
  return giveUp(office, tenant, job);
}

/** Agents have tried often enough, or nobody is there who does. Its owner hears of it, and can have it run again. */
async function giveUp(office: Office, tenant: string, job: UploadJob): Promise<void> {
  const place = { tenant, id: job.upload };
  const refusal = refuse('upload_abandoned', { tries: job.attempt }, `${job.kind} ${job.piece ?? ''}`.trim());
  const stepped = await step(office, place, () => [{ type: 'refused', run: job.run, refusal }]);
  office.log({ what: 'lost', tenant, upload: job.upload, detail: job.kind });
  if (stepped && isOver(stepped.record.state.status)) await settle(office, place);
}

/** For any pool of its zone. */
const heavy = ({ light: _, ...job }: UploadJob): UploadJob => job;

async function again(office: Office, tenant: string, record: JobRecord, job: UploadJob): Promise<void> {
  const { opened: _, agent: __, sent: ___, ...kept } = record;
  const { attempt } = job;
  // Each try has its own time to be taken.
  const queued = attempt === record.job.attempt ? record.queued : office.now();
  office.log({ what: 'resent', tenant, upload: job.upload, detail: job.kind, count: attempt });
  await note(office, tenant, record, { job, queued, opened: undefined, agent: undefined, sent: undefined });
  await send(office, tenant, [{ ...kept, job }]);
}
