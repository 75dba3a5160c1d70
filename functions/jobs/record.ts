// Rows of jobs in their tenant's partition, by key:
//   u!<id, complemented>            record of an upload, newest first; `p!` of a project, `x!` of a document
//   o!<id>                          mark of an open job
//   d!<due>!<id>                    time of the next sweep
//   w!<zone>!<model>!<rank>.<job>   a job that waits for the window of its queue
//   q!<zone>!<model>!<rank>.<job>   a queued job
//   n!<id>!<run>.<try>              a delivery of its notice
//   b!<id>.<run>[.<edition>]        usage of a finished run, until the edge has booked it
import { DAY_MS } from '../../shared/day.ts';
import { jobKey, type UploadJob } from '../../shared/jobs/job.ts';
import { isUploadId, type UploadPlace } from '../../shared/jobs/paths.ts';
import type { NewProject } from '../../shared/jobs/project-contract.ts';
import { isProjectId } from '../../shared/jobs/project-id.ts';
import type { Speech } from '../../shared/jobs/speech.ts';
import { isOver, newState, type UploadState, type WantedJob, wantedJobs } from '../../shared/jobs/state.ts';
import type { NewUpload, UploadRow } from '../../shared/jobs/upload-contract.ts';
import { UPLOAD_BYTES } from '../../shared/jobs/upload-contract.ts';
import { type UploadUsage, usageKey } from '../../shared/jobs/usage.ts';
import { classes } from '../../shared/tenant/claims.ts';
import type { Row, Value } from '../store/rows.ts';

/**
 * Life of a write address: 4 GiB over 400 kbit/s fit; a leaked one is write-only and useless the next day.
 */
export const UPLOAD_GRANT_S = 24 * 3600;
/** Interval of the checks of an open upload as a whole; each sweep checks its jobs. */
const UPLOAD_CHECK_MS = 15 * 60_000;
/**
 * Interval of the checks for a file whose event was lost; a quarter of its age for a tenant with more than
 * one sweep takes.
 */
export const UPLOAD_FILE_CHECK_S = 60;
/** Life of the addresses an agent gets for one job; a job takes minutes. */
export const JOB_URL_S = 3_600;
/** Days the audio stays after a failure of ours: a weekend, for an operator to look and run it again. */
export const UPLOAD_RETRY_DAYS = 3;
/** Days a transcript can be read; the row of an upload, which has no content, goes with it. */
export const UPLOAD_OUTCOME_DAYS = 30;

/** The request; with the speech settings of a document or the facts of a project. */
type JobRequest = Omit<NewUpload, 'tenant' | 'id'> & {
  readonly speech?: Speech | undefined;
  readonly project?: NewProject['project'] | undefined;
};

export interface UploadRecord {
  readonly tenant: string;
  readonly id: string;
  readonly request: JobRequest;
  readonly state: UploadState;
  /** Milliseconds since 1970, all times. */
  readonly created: number;
  readonly updated: number;
  /** Deadline of the upload of the file. */
  readonly expires: number;
  readonly ended?: number | undefined;
  /** The end that was reported to the log. */
  readonly recorded?: string | undefined;
  readonly audio: UploadRow['audio'];
  readonly transcript: UploadRow['transcript'];
  readonly notice: UploadRow['notice'];
  /** Deliveries of the notice so far, and when the next one is due. */
  readonly noticeTries: number;
  readonly noticeDue?: number | undefined;
  /** Time of the next sweep; part of a key. */
  readonly due: number;
}

/** A job that is not done. Members after `queued` are known of one in the queue. */
export interface JobRecord {
  /** `attempt` is that of the copy sent last. */
  readonly job: UploadJob;
  /** Times at which it became wanted, was queued, was sent, and was last reported by an agent. */
  readonly since: number;
  readonly queued?: number | undefined;
  readonly sent?: number | undefined;
  readonly opened?: number | undefined;
  readonly agent?: string | undefined;
  /** `attempt` of the copy that this agent works on. */
  readonly copy?: number | undefined;
  /** Time at which the sweep found its agent silent, and number of rounds that agents have left. */
  readonly suspected?: number | undefined;
  readonly rounds?: number | undefined;
}

/** Assumed size of a file whose size was not announced. */
export const largest = ({ most }: Pick<NewUpload, 'most'>): number =>
  Math.min(most?.bytes ?? Number.POSITIVE_INFINITY, UPLOAD_BYTES);

export const MINUTE = 60_000;
const lookMs = UPLOAD_FILE_CHECK_S * 1_000;

export function newRecord(request: JobRequest & UploadPlace, now: number, state: UploadState = newState): UploadRecord {
  const { tenant, id, ...rest } = request;
  const record: UploadRecord = {
    tenant,
    id,
    request: rest,
    state,
    created: now,
    updated: now,
    expires: now + UPLOAD_GRANT_S * 1_000,
    audio: 'none',
    transcript: 'none',
    notice: 'none',
    noticeTries: 0,
    due: 0,
  };
  return { ...record, due: dueOf(record, now) };
}

/**
 * Returns the time of the next look: events get lost, audio is kept for a while, receivers do not answer. `crowded`: more
 * uploads of the tenant are due than one look takes, so files that have not come are looked for less often.
 */
export function dueOf(record: UploadRecord, now: number, crowded = false): number {
  const { state, created, expires } = record;
  if (state.status === 'granted') {
    const pause = crowded ? Math.max(lookMs, (now - created) / 4) : lookMs;
    return Math.min(now + pause, Math.max(now, expires) + lookMs);
  }
  if (!isOver(state.status)) return now + UPLOAD_CHECK_MS;
  return Math.min(
    now < closedAt(record) ? closedAt(record) : Number.POSITIVE_INFINITY,
    audioUntil(record) ?? Number.POSITIVE_INFINITY,
    record.notice === 'pending' ? (record.noticeDue ?? now) : Number.POSITIVE_INFINITY,
    forgetAt(record),
  );
}

/** Expiry of the last address given for it: files that arrive until then are deleted then. */
const closedAt = ({ expires, ended = 0 }: UploadRecord): number =>
  Math.max(expires, ended + JOB_URL_S * 1_000) + lookMs;

/** Returns the time to delete the audio of a finished upload; `undefined` when there is none. */
export function audioUntil(record: UploadRecord): number | undefined {
  const { audio, request, state, ended = 0 } = record;
  if (audio !== 'held') return undefined;
  // Plain audio is never retained: `keepDays` is for sealed files.
  if (state.status === 'cancelled' || !request.sealed) return ended;
  const ours = state.refusal?.reason === 'upload_abandoned' || state.refusal?.reason === 'upload_parts_lost';
  const days = ours ? UPLOAD_RETRY_DAYS : 0;
  return ended + Math.max(days, request.keepDays) * DAY_MS;
}

/** Time at which the row goes. */
export const forgetAt = ({ ended = 0, request }: UploadRecord): number =>
  ended + Math.max(UPLOAD_OUTCOME_DAYS, request.keepDays) * DAY_MS;

const DIGITS = '0123456789abcdef';
function complement(id: string): string {
  let text = '';
  for (const digit of id) text += digit === '-' ? digit : DIGITS[15 - DIGITS.indexOf(digit)];
  return text;
}

export const recordKey = (id: string): string => `${kindOf(id)}!${complement(id)}`;
const kindOf = (id: string): string => (isUploadId(id) ? 'u' : isProjectId(id) ? 'p' : 'x');
export const openKey = (id: string): string => `o!${id}`;
export const usageRowKey = (usage: Pick<UploadUsage, 'upload' | 'run' | 'edition'>): string => `b!${usageKey(usage)}`;
export const dueKey = ({ due, id }: Pick<UploadRecord, 'due' | 'id'>): string =>
  `d!${String(Math.floor(due)).padStart(15, '0')}!${id}`;
export const deliveriesPrefix = (id: string): string => `n!${id}!`;
export const deliveryKey = (id: string, run: number, tries: number): string =>
  `${deliveriesPrefix(id)}${String(run).padStart(6, '0')}.${String(tries).padStart(3, '0')}`;

/** The queue of a job. */
export type QueueLane = Pick<UploadJob, 'zone' | 'model'>;

/** `w` waits, `q` is queued. */
export const zoneJobsPrefix = (place: 'w' | 'q', zone: string): string => `${place}!${zone}!`;
/** Prefix of the jobs of one queue: the more urgent class first, then the older upload. */
export const jobsPrefix = (place: 'w' | 'q', { zone, model = '' }: QueueLane): string =>
  `${zoneJobsPrefix(place, zone)}${modelWord(model)}!`;
export const rankPrefix = (place: 'w' | 'q', job: QueueLane & Pick<UploadJob, 'class'>): string =>
  `${jobsPrefix(place, job)}${classes.indexOf(job.class)}.`;
/** Keys of tables have few kinds of characters. */
const modelWord = (model: string): string =>
  model.replace(/[^A-Za-z0-9_-]/gu, (other) => `=${other.codePointAt(0)?.toString(16)}.`);
export const uploadJobsPrefix = (place: 'w' | 'q', { request, id }: UploadRecord): string =>
  `${rankPrefix(place, request)}${id}.`;
export const jobRowKey = (place: 'w' | 'q', job: UploadJob): string => `${rankPrefix(place, job)}${jobKey(job)}`;

/** The row of a record. It stores the request as `asked`. */
export const rowValueOf = ({ request, ...rest }: UploadRecord): Value => ({ ...rest, asked: request });

/** Rows are ours alone, so what is read is what was written. */
export function readRecord({ value }: Row): UploadRecord {
  const { asked, ...rest } = value as unknown as Omit<UploadRecord, 'request'> & { readonly asked: JobRequest };
  return { ...rest, request: asked };
}
export const readJobRecord = (row: Row): JobRecord => row.value as unknown as JobRecord;

export function jobOf(record: UploadRecord, wanted: WantedJob, attempt = 1): UploadJob {
  const { tenant, id, request, state } = record;
  return {
    v: 1,
    kind: wanted.kind,
    tenant,
    upload: id,
    run: state.run,
    ...(wanted.piece !== undefined && { piece: wanted.piece }),
    ...(wanted.edition !== undefined && { edition: wanted.edition }),
    ...(request.speech?.light === true && { light: true as const }),
    attempt,
    zone: request.zone,
    model: request.model,
    class: request.class,
  };
}

/** The jobs that are wanted now, by the key of their work. */
export const jobsOf = (record: UploadRecord): Map<string, UploadJob> =>
  new Map(
    wantedJobs(record.state)
      .map((wanted) => jobOf(record, wanted))
      .map((job) => [jobKey(job), job]),
  );

export const placeOf = ({ tenant, id }: UploadRecord): UploadPlace => ({ tenant, id });

/** Returns the row that the edge sees. */
export function rowOf(record: UploadRecord): UploadRow {
  const { tenant, id, request, state, created, updated, expires, ended, audio, transcript, notice, noticeTries } =
    record;
  const { subject, commitment, home, most, speech, project, bytes, fingerprint, members, languages, ...facts } =
    request;
  const { confidence } = state.detected ?? {};
  const { reason, params } = state.refusal ?? {};
  return {
    ...facts,
    ...(confidence !== undefined && { languageConfidence: confidence }),
    tenant,
    id,
    status: state.status,
    run: state.run,
    seq: state.seq,
    created,
    updated,
    expires,
    ...(ended !== undefined && { ended }),
    ...((state.bytes ?? bytes) !== undefined && { bytes: state.bytes ?? bytes }),
    ...(state.seconds !== undefined && { seconds: state.seconds }),
    pieces: state.pieces,
    piecesDone: state.done.length,
    warnings: [...state.warnings],
    ...(reason && { refusal: { reason, ...(params && { params: { ...params } }) } }),
    audio,
    transcript,
    notice,
    noticeTries,
  };
}
