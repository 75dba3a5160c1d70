// Says what open work waits for, and since when.

import { isOver } from '../../shared/jobs/state.ts';
import type { Waiting } from '../../shared/jobs/upload-contract.ts';
import { endOf } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { isReported } from './decide-redrive.ts';
import { UPLOAD_WINDOW } from './limits.ts';
import { type JobRecord, readJobRecord, type UploadRecord, uploadJobsPrefix } from './record.ts';

/** Kinds of wait, the last stage of a job first. */
const ORDER: readonly Waiting['for'][] = ['pool', 'queue', 'slot', 'upload'];

/** Returns the wait of an upload or a document with these jobs; `undefined` while an agent works on one, and at the end. */
export function waitingOf(
  { state, created }: Pick<UploadRecord, 'state' | 'created'>,
  jobs: readonly JobRecord[],
  now: number,
): Waiting | undefined {
  if (isOver(state.status)) return undefined;
  if (state.status === 'granted') return { for: 'upload', since: created };
  return jobs.some((job) => isReported(job, now)) ? undefined : longestOf(jobs.map(waitOf));
}

function waitOf({ since, queued, sent, opened }: JobRecord): Waiting {
  if (queued === undefined) return { for: 'slot', since };
  // An agent that is silent counts as none.
  return sent === undefined ? { for: 'queue', since: queued } : { for: 'pool', since: opened ?? queued };
}

/** Returns the oldest of the waits that are furthest on their way. */
export function longestOf(waits: readonly Waiting[]): Waiting | undefined {
  const furthest = ORDER.find((word) => waits.some((wait) => wait.for === word));
  return waits
    .filter((wait) => wait.for === furthest)
    .reduce<Waiting | undefined>((oldest, wait) => (oldest && oldest.since <= wait.since ? oldest : wait), undefined);
}

/** Reads the jobs of an upload and returns its wait. */
export async function readWaiting(context: JobContext, record: UploadRecord): Promise<Waiting | undefined> {
  const scan = async (place: 'q' | 'w', limit: number) => {
    const prefix = uploadJobsPrefix(place, record);
    return (await context.rows.scan(record.tenant, prefix, endOf(prefix), limit)).map(readJobRecord);
  };
  const begun = record.state.status !== 'granted' && !isOver(record.state.status);
  const jobs = begun ? await Promise.all([scan('q', UPLOAD_WINDOW), scan('w', 1)]) : [];
  return waitingOf(record, jobs.flat(), context.now());
}
