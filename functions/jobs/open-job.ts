// An agent has taken a job: is it still wanted, and where is what it needs?

import { jobKey, readsOf, type UploadJob, writesOf } from '../../shared/jobs/job.ts';
import { inEdition, OUTCOMES, type OutcomeName, outcomeBlob, UPLOADS, uploadBlob } from '../../shared/jobs/paths.ts';
import type { OpenedJob } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { AgentCaller } from '../caller/agent-caller.ts';
import type { JobContext } from './context.ts';
import { JOB_LEASE_MS } from './limits.ts';
import { JOB_URL_S, type JobRecord, jobsOf, type UploadRecord } from './record.ts';
import { updateJob } from './release.ts';
import { readUpload } from './step.ts';

export async function openTakenJob(
  context: JobContext,
  job: UploadJob,
  caller: AgentCaller,
): Promise<Result<OpenedJob>> {
  const place = { tenant: job.tenant, id: job.upload };
  const record = await readUpload(context, place);
  if (!record) return no(refuse('upload_unknown'));
  if (record.request.zone !== caller.zone) return no(refuse('misdirected', undefined, 'another zone'));
  // The job as it is wanted: a message says nothing but which one.
  const wanted = jobsOf(record).get(jobKey(job));
  if (!wanted) return no(refuse('upload_status_wrong', { status: record.state.status }));
  const now = context.now();
  const taken = await updateJob(context, job.tenant, { job: wanted }, (seen) =>
    isLeased(seen, job.attempt, now) ? undefined : { opened: now, agent: caller.agent, copy: job.attempt },
  );
  // The agent deletes its message, which is a copy: that of the other agent is still in the queue.
  if (!taken) return no(refuse('upload_status_wrong', { status: record.state.status }));
  return ok(await addressesOf(context, record, wanted, now + JOB_URL_S * 1_000));
}

/** Returns whether an agent works on another copy of the job and has reported so recently. */
const isLeased = ({ opened, copy }: JobRecord, attempt: number, now: number): boolean =>
  opened !== undefined && copy !== undefined && copy !== attempt && now < opened + JOB_LEASE_MS;

async function addressesOf(
  context: JobContext,
  record: UploadRecord,
  job: UploadJob,
  expires: number,
): Promise<OpenedJob> {
  const { tenant, id, request, state } = record;
  const place = { tenant, id };
  const outcome = (name: OutcomeName) => outcomeBlob({ ...place, run: state.run, name });
  const read: OpenedJob['read'] = {};
  for (const name of readsOf(job, state.pieces, state.edits)) {
    read[name] =
      name === 'upload'
        ? {
            url: await context.blobs.address(UPLOADS, uploadBlob(place), 'read', expires),
            ...(state.etag !== undefined && { etag: state.etag }),
          }
        : { url: await context.blobs.address(OUTCOMES, outcome(name), 'read', expires) };
  }
  const write: OpenedJob['write'] = {};
  for (const name of writesOf(job)) {
    // A refusal is of the document as it is now, whatever the job is about.
    const blob = outcome(name === 'refusal' ? inEdition(name, state.edition ?? 0) : name);
    write[name] = { url: await context.blobs.address(OUTCOMES, blob, 'create', expires) };
  }
  const { model, language = state.detected?.language, languages, contentType, filename, sealed, formats } = request;
  const { confidence } = state.detected ?? {};
  return {
    upload: {
      ...place,
      run: state.run,
      model,
      ...(language !== undefined && { language }),
      ...(confidence !== undefined && { languageConfidence: confidence }),
      ...(languages && { languages: [...languages] }),
      class: request.class,
      ...(contentType !== undefined && { contentType }),
      ...(filename !== undefined && { filename }),
      sealed,
      bytes: state.bytes ?? 0,
      ...(request.most?.seconds !== undefined && { secondsMax: request.most.seconds }),
      formats,
      zoneKeyId: context.settings.ZONE_KEYS[request.zone]?.[0]?.kid ?? '',
      pieces: state.pieces,
      ...(request.speech && { speech: request.speech }),
      ...(state.edits && { edits: { ...state.edits } }),
    },
    read,
    write,
    expires,
  };
}
