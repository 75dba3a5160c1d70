// Redrives jobs that the queue or an agent has lost, and collects outcomes whose events were lost.

import type { UploadJob } from '../../shared/jobs/job.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { refuse } from '../../shared/refusal.ts';
import { endOf, type Row } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { decideRedrive, hasLost, isReported, isUnopened } from './decide-redrive.ts';
import { JOB_LEASE_MS } from './limits.ts';
import { type JobRecord, jobRowKey, readJobRecord, zoneJobsPrefix } from './record.ts';
import { send, updateJob } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';
import { takeOutcomes } from './take-outcome.ts';

/** Uploads of a tenant whose waiting jobs one sweep counts; the next one continues. */
const SWEEP_QUEUED_UPLOADS_MAX = 1_000;

/** Runs work and collects its failure, so that other work goes on. */
export type Attempt = (work: Promise<unknown>) => Promise<unknown>;

/** An `Attempt` that adds what failed to `failures`. */
export const collectIn =
  (failures: unknown[]): Attempt =>
  (work) =>
    work.catch((error: unknown) => void failures.push(error));

/** Looks at the queued jobs of a tenant in a zone. Returns them as they were. */
export async function redriveQueued(
  context: JobContext,
  tenant: string,
  zone: string,
  attempt: Attempt,
): Promise<readonly JobRecord[]> {
  const prefix = zoneJobsPrefix('q', zone);
  const rows = await context.rows.scan(tenant, prefix, endOf(prefix), SWEEP_QUEUED_UPLOADS_MAX);
  const jobs = rows.map(readJobRecord);
  // An agent that works reports three times within a lease. Where none has, its outcome may be there, its event lost.
  const silent = jobs.filter(({ opened }) => opened !== undefined && opened + JOB_LEASE_MS <= context.now());
  await takeOutcomesOf(context, silent, attempt);
  for (const { job } of jobs.filter((record) => decideRedrive(record, context.now()) !== 'none'))
    await attempt(redrive(context, tenant, job));
  return jobs;
}

async function takeOutcomesOf(context: JobContext, records: readonly JobRecord[], attempt: Attempt): Promise<void> {
  const runs = new Map(records.map(({ job }) => [`${job.upload}.${job.run}`, job]));
  for (const { tenant, upload, run } of runs.values())
    await attempt(takeOutcomes(context, { tenant, id: upload }, run));
}

async function redrive(context: JobContext, tenant: string, read: UploadJob): Promise<void> {
  const row = await context.rows.read(tenant, jobRowKey('q', read));
  if (!row || !(await isWanted(context, tenant, row))) return;
  const record = readJobRecord(row);
  const { light: _, ...job } = record.job;
  switch (decideRedrive(record, context.now())) {
    case 'send':
      return send(context, tenant, [record]);
    case 'offer':
    case 'resend':
      // For any pool of its zone.
      return resend(context, tenant, row, job);
    case 'suspect':
      return void (await updateJob(context, tenant, record, { suspected: context.now() }));
    case 'give-up':
      return giveUp(context, tenant, record.rounds ?? 0, job);
    default:
  }
}

/** Returns whether the upload still wants the job; removes the row of one that it does not. */
async function isWanted(context: JobContext, tenant: string, row: Row): Promise<boolean> {
  const { job } = readJobRecord(row);
  const upload = await readUpload(context, { tenant, id: job.upload });
  if (upload && !isOver(upload.state.status) && upload.state.run === job.run) return true;
  await context.rows.commit(tenant, [{ type: 'remove', key: row.key }]);
  return false;
}

/**
 * Sends another copy of a job whose row is as it was read. Sweeps overlap: one of them changes the row and sends, so no
 * two copies have one `attempt`. The next sweep looks at a row that an agent has changed meanwhile.
 */
async function resend(context: JobContext, tenant: string, row: Row, job: UploadJob): Promise<void> {
  const record = readJobRecord(row);
  const left = record.opened !== undefined;
  const copy: JobRecord = {
    since: record.since,
    job: { ...job, attempt: job.attempt + 1 },
    // Each round has its own time to be taken.
    queued: left ? context.now() : record.queued,
    rounds: (record.rounds ?? 0) + (left ? 1 : 0),
    sent: undefined,
    opened: undefined,
    agent: undefined,
    copy: undefined,
    suspected: undefined,
  };
  const { key, version } = row;
  if (!(await context.rows.commit(tenant, [{ type: 'replace', key, version, value: { ...copy } }]))) return;
  context.log({ what: 'resent', tenant, upload: job.upload, detail: job.kind, count: copy.job.attempt });
  await send(context, tenant, [copy]);
}

/** Ends an upload that no agent has finished or taken. Its owner can run it again. */
async function giveUp(context: JobContext, tenant: string, rounds: number, job: UploadJob): Promise<void> {
  const place = { tenant, id: job.upload };
  const refusal = refuse('upload_abandoned', { tries: rounds + 1 }, `${job.kind} ${job.piece ?? ''}`.trim());
  const stepped = await step(context, place, () => [{ type: 'refused', run: job.run, refusal }]);
  context.log({ what: 'lost', tenant, upload: job.upload, detail: job.kind });
  if (stepped && isOver(stepped.record.state.status)) await settle(context, place);
}

/**
 * Finds jobs that one queue has lost before an agent took them. `records` are those of all tenants: a queue is shared,
 * and only the sum of its jobs can be held against the number of its messages.
 */
export async function resendLost(context: JobContext, records: readonly JobRecord[], attempt: Attempt): Promise<void> {
  const due = records.filter((record) => isUnopened(record, context.now()));
  const [first] = due;
  if (!first) return;
  const messages = await context.jobs.messages(first.job);
  const opened = records.filter((record) => isReported(record, context.now())).length;
  if (!hasLost(messages, due.length, opened)) return;
  await takeOutcomesOf(context, due, attempt);
  // Agents may have taken some since they were read.
  const left: { readonly row: Row; readonly record: JobRecord }[] = [];
  for (const { job } of due) {
    const row = await context.rows.read(job.tenant, jobRowKey('q', job));
    if (!row) continue;
    const record = readJobRecord(row);
    if (isUnopened(record, context.now())) left.push({ row, record });
  }
  if (!hasLost(messages, left.length, opened)) return;
  for (const { row, record } of left) await attempt(resend(context, record.job.tenant, row, record.job));
}
