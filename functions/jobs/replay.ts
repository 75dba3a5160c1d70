// Replays dead jobs: takes one from the dead-letter queue, makes it wanted again, deletes it. In this order a
// crash leaves the message, and a second replay of a job changes nothing.

import { jobKey, readJob, type UploadJob } from '../../shared/jobs/job.ts';
import { isOver } from '../../shared/jobs/state.ts';
import type { JobContext } from './context.ts';
import { jobRowKey, jobsOf } from './record.ts';
import { release, updateJob } from './release.ts';
import { readUpload } from './step.ts';
import { rerunUpload } from './uploads.ts';

/** Calls of one replay that find dead letters: a request of an operator ends, and can be repeated. */
const REPLAY_CALLS_MAX = 100;

export interface Replayed {
  /** Sent again. */
  replayed: number;
  /** Uploads that had been given up, begun again from their audio. */
  rerun: number;
  /** No longer wanted, or no job at all; deleted. */
  dropped: number;
}

export async function replay(context: JobContext, zone: string): Promise<Replayed> {
  const counts: Replayed = { replayed: 0, rerun: 0, dropped: 0 };
  for (let calls = 0; calls < REPLAY_CALLS_MAX; calls += 1) {
    const dead = await context.jobs.takeDead(zone);
    if (dead.length === 0) break;
    for (const one of dead) {
      const job = readJob(one.body);
      const outcome = job && job.zone === zone ? await replayJob(context, job) : 'dropped';
      counts[outcome] += 1;
      await context.jobs.deleteDead(zone, one);
    }
  }
  context.log({ what: 'replayed', zone, count: counts.replayed + counts.rerun });
  return counts;
}

async function replayJob(context: JobContext, job: UploadJob): Promise<keyof Replayed> {
  const place = { tenant: job.tenant, id: job.upload };
  const record = await readUpload(context, place);
  if (!record) return 'dropped';
  const wanted = jobsOf(record).get(jobKey(job));
  if (wanted) {
    // Only if it is in the queue as far as the rows know; a waiting one comes by itself.
    if (await context.rows.read(job.tenant, jobRowKey('q', wanted))) {
      const again = { ...wanted, attempt: job.attempt + 1 };
      await context.jobs.send([again]);
      const now = context.now();
      const facts = { queued: now, sent: now, opened: undefined, copy: undefined, rounds: 0 };
      await updateJob(context, job.tenant, { job: wanted }, { job: again, ...facts });
    }
    await release(context, job.tenant, wanted);
    return 'replayed';
  }
  const given = isOver(record.state.status) && record.state.refusal?.reason === 'upload_abandoned';
  if (!given || record.state.run !== job.run) return 'dropped';
  return (await rerunUpload(context, place)).ok ? 'rerun' : 'dropped';
}
