// One step of an upload: reads, decides, writes, and retries after a lost race.

import { UPLOAD_PIECES_MAX } from '../../shared/jobs/limits.ts';
import type { UploadPlace } from '../../shared/jobs/paths.ts';
import type { UploadEvent } from '../../shared/jobs/state.ts';
import { endOf, type Row } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { changesOf, decideStep, moveMarks, replaceRecord } from './decide-step.ts';
import { JOB_RACE_TRIES_MAX } from './limits.ts';
import { jobsOf, readRecord, recordKey, type UploadRecord, uploadJobsPrefix } from './record.ts';
import { reportBegin } from './report-work.ts';

export interface Stepped {
  readonly record: UploadRecord;
  /** The record before. */
  readonly from: UploadRecord;
  /** Reports whether this step changed the row. */
  readonly moved: boolean;
}

/** Lets the events happen. `undefined` when there is no such upload. Throws when others were faster too often. */
export async function step(
  context: JobContext,
  place: UploadPlace,
  eventsOf: (record: UploadRecord) => readonly UploadEvent[],
): Promise<Stepped | undefined> {
  for (let tries = 0; tries < JOB_RACE_TRIES_MAX; tries += 1) {
    const row = await context.rows.read(place.tenant, recordKey(place.id));
    if (!row) return undefined;
    const record = readRecord(row);
    const now = context.now();
    const after = decideStep(record, eventsOf(record), now);
    if (!after) return { record, from: record, moved: false };
    await reportBegin(context, record, after);
    // A row of a job exists only while the record wants the job.
    const jobs = sameJobs(record, after) || jobsOf(record).size === 0 ? [] : await readJobs(context, record);
    const changes = sameJobs(record, after)
      ? [replaceRecord(row, after), ...moveMarks(record, after)]
      : changesOf(row, { from: record, to: after }, jobs, now);
    if (await context.rows.commit(place.tenant, changes)) return { record: after, from: record, moved: true };
  }
  throw new Error('others were faster too often');
}

/** Changes the record without an event, after a deletion or a report. `undefined` from `change` leaves it. */
export async function amend(
  context: JobContext,
  place: UploadPlace,
  change: (record: UploadRecord) => UploadRecord | undefined,
): Promise<UploadRecord | undefined> {
  for (let tries = 0; tries < JOB_RACE_TRIES_MAX; tries += 1) {
    const row = await context.rows.read(place.tenant, recordKey(place.id));
    if (!row) return undefined;
    const record = readRecord(row);
    const after = change(record);
    if (!after) return record;
    if (await context.rows.commit(place.tenant, [replaceRecord(row, after), ...moveMarks(record, after)])) return after;
  }
  throw new Error('others were faster too often');
}

export async function readUpload(context: JobContext, place: UploadPlace): Promise<UploadRecord | undefined> {
  const row = await context.rows.read(place.tenant, recordKey(place.id));
  return row && readRecord(row);
}

function sameJobs(from: UploadRecord, to: UploadRecord): boolean {
  const [before, after] = [jobsOf(from), jobsOf(to)];
  return before.size === after.size && [...before.keys()].every((key) => after.has(key));
}

/** The rows of all jobs of an upload, waiting and queued. */
async function readJobs(context: JobContext, record: UploadRecord): Promise<Row[]> {
  const scan = (prefix: string) => context.rows.scan(record.tenant, prefix, endOf(prefix), UPLOAD_PIECES_MAX + 2);
  const [waiting, queued] = await Promise.all([
    scan(uploadJobsPrefix('w', record)),
    scan(uploadJobsPrefix('q', record)),
  ]);
  return [...waiting, ...queued];
}
