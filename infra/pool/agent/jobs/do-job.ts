import type { JobKind, UploadJob } from '../../../../shared/jobs/job.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import type { LeasedModel } from '../models/served-model.ts';
import { bugDetail } from '../telemetry/log.ts';
import { assembleDocument } from './speech/assemble.ts';
import { planDocument } from './speech/plan-document.ts';
import { speakSegment } from './speech/speak-segment.ts';
import { failed, type Task, type Verdict, type Workshop, writeOutcomeFile } from './task/task.ts';
import { detectUpload } from './transcription/detect.ts';
import { mergeResults } from './transcription/merge.ts';
import { planUpload } from './transcription/plan.ts';
import { workPiece } from './transcription/work.ts';

/**
 * Longest work on one job: less than the life of its addresses, and far more than splitting twelve hours
 * takes.
 */
const JOB_MS = 50 * 60_000;
/**
 * Interval at which an agent polls whether its job is cancelled: a cancelled upload keeps its slot that much
 * longer.
 */
const JOB_WANTED_MS = 10_000;

type Kinds = Readonly<Record<JobKind, (task: Task) => Promise<Verdict>>>;

const kinds: Kinds = { detect: detectUpload, plan: planUpload, work: workPiece, merge: mergeResults };
const refuseDetection = async () => failed(refuse('internal', undefined, 'a document names its language'));
/** Kinds of job of a document, which becomes sound. */
const speechKinds: Kinds = { detect: refuseDetection, plan: planDocument, work: speakSegment, merge: assembleDocument };

/** Outcome of a job for the queue: only a failed one stays there. */
export type JobEnd =
  | { readonly type: 'done'; readonly seconds?: number }
  /** Its outcome says why there is no transcript. */
  | { readonly type: 'refused'; readonly refusal: Refusal }
  /** The job was cancelled or has an outcome. */
  | { readonly type: 'unwanted' }
  | { readonly type: 'failed'; readonly refusal: Refusal };

/**
 * Runs one job from its opening to its outcome. Never rejects: a bug is a failed job, which another agent may
 * try.
 */
export async function doJob(shop: Workshop, job: UploadJob, stopped: AbortSignal): Promise<JobEnd> {
  const late = AbortSignal.timeout(JOB_MS);
  const unwanted = new AbortController();
  const signal = AbortSignal.any([stopped, late, unwanted.signal]);
  let watching: NodeJS.Timeout | undefined;
  let leased: LeasedModel | undefined;
  try {
    const opened = await shop.jobsClient.open(job);
    if (!opened.ok) return failed(opened.refusal);
    if (!opened.value) return { type: 'unwanted' };
    const { zoneKeyId } = opened.value.upload;
    const held = await shop.keyring.held(zoneKeyId);
    if (!held.ok) return failed(held.refusal);
    const zone = shop.keyring.find(zoneKeyId);
    if (!zone) return failed(refuse('uploads_unavailable', undefined, 'the key of the zone is not known here'));
    const deadline = shop.now() + JOB_MS;
    const served = shop.model(opened.value.upload.model);
    leased = served && (await shop.lease(served, signal));
    const [model, forget] = [leased?.model, () => unwanted.abort()];
    const task: Task = { shop, job, opened: opened.value, model, zone, signal, deadline, forget };
    watching = watch(task);
    const verdict = refuseLost(await (opened.value.upload.speech ? speechKinds : kinds)[job.kind](task));
    if (unwanted.signal.aborted && verdict.type !== 'done') return { type: 'unwanted' };
    if (verdict.type !== 'refused') return verdict;
    const written = await writeOutcomeFile(task, 'refusal', [], { refusal: verdict.refusal });
    return written.ok ? verdict : failed(written.refusal);
  } catch (error) {
    if (unwanted.signal.aborted) return { type: 'unwanted' };
    if (stopped.aborted) return failed(refuse('pool_busy', undefined, 'agent stops'));
    if (late.aborted) return failed(refuse('deadline_passed', undefined, 'the job took too long'));
    return failed(refuse('internal', undefined, bugDetail(error)));
  } finally {
    clearInterval(watching);
    leased?.release();
  }
}

/** Refuses a run of which storage no longer has an outcome: no try finds it. What is swept belongs to a run that is over. */
const refuseLost = (verdict: Verdict): Verdict =>
  verdict.type === 'failed' && verdict.refusal.reason === 'upload_audio_gone'
    ? { type: 'refused', refusal: refuse('upload_parts_lost', undefined, verdict.refusal.detail) }
    : verdict;

/** An upload may be cancelled at any time: who works on it asks now and then. What cannot be asked is still wanted. */
function watch({ shop, job, forget }: Task): NodeJS.Timeout {
  let polling = false;
  return setInterval(async () => {
    if (polling) return;
    polling = true;
    const opened = await shop.jobsClient.open(job);
    polling = false;
    if (opened.ok && !opened.value) forget();
  }, shop.wantedMs ?? JOB_WANTED_MS);
}
