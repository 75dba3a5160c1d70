// A message of a job queue: it names the work, without audio, text, secrets or addresses. The agent that
// takes it opens it at the functions (functions/jobs/open-job.ts); a job that is no longer wanted is refused
// there and deleted.
import { z } from 'zod';
import { toHex } from '../hex.ts';
import { tenantName, zoneName } from '../names.ts';
import { sha256 } from '../sha256.ts';
import { classes } from '../tenant/claims.ts';
import { PROJECT_SEGMENTS_MAX, UPLOAD_PIECES_MAX } from './limits.ts';
import { inEdition, isRecordId, isUploadId, isWorkId, type OutcomeName, piecesMax } from './paths.ts';

const jobKinds = ['detect', 'plan', 'work', 'merge'] as const;
export type JobKind = (typeof jobKinds)[number];

export const uploadId = z.string().refine(isUploadId, 'must be a UUID of version 7 in lower case');

/** An upload, or a document of a text project. */
export const workId = z.string().refine(isWorkId, 'must be the id of an upload or of a document');
export const recordId = z.string().refine(isRecordId, 'must be the id of an upload, a document or a project');

/**
 * A job of an upload or a document. The kind names the work:
 *
 * - `detect` writes `language`, the language of the first speech. Its queue is that of a family, and the jobs after it
 *   are of the member that serves the language.
 * - `plan` opens the file, cuts the audio at silences into `pieces/N` and writes `plan`. A recording of one piece may
 *   finish at once: then it writes `transcript` and no `plan`.
 * - `work` recognises `pieces/N` and writes `results/N`.
 * - `merge` joins `results/*` in order and writes `transcript`.
 *
 * For a document, `plan` cuts the text into segments `pieces/N`, `work` speaks one, and `merge` joins the audio. For
 * unusable audio the agent writes `refusal`; after any other failure the job stays in the queue.
 */
export const uploadJob = z.object({
  v: z.literal(1),
  kind: z.enum(jobKinds),
  tenant: tenantName,
  upload: workId,
  /** Run of the upload, from 1. A job of an earlier run is no longer wanted. */
  run: z.number().int().min(1).max(999_999),
  /** Piece of a `work` job, from 0. */
  piece: z
    .number()
    .int()
    .min(0)
    .max(Math.max(UPLOAD_PIECES_MAX, PROJECT_SEGMENTS_MAX) - 1)
    .optional(),
  /** Edition of a changed document that the job belongs to. */
  edition: z.number().int().min(1).max(999_999).optional(),
  /** Queued for pools without accelerators, if the zone has one. */
  light: z.literal(true).optional(),
  /** Number of times that the job was queued, from 1. */
  attempt: z.number().int().min(1),
  zone: zoneName,
  /** Model or family, which selects the queue: an agent polls only queues of what it serves. */
  model: z.string().min(1).max(128).optional(),
  class: z.enum(classes),
});

export type UploadJob = z.infer<typeof uploadJob>;

/** Parses the body of a queue message. @returns `undefined` for anything else; such a message is dropped. */
export function readJob(body: string): UploadJob | undefined {
  try {
    const { data } = uploadJob.safeParse(JSON.parse(body));
    return data && isWhole(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

function isWhole({ kind, piece, upload, edition }: UploadJob): boolean {
  if ((kind === 'work') !== (piece !== undefined) || (piece ?? 0) >= piecesMax(upload)) return false;
  return edition === undefined || !isUploadId(upload);
}

/** Identifies the work across attempts. Sorts by upload, and its merge before its work. */
export const jobKey = ({
  upload,
  run,
  kind,
  piece = 0,
  edition = 0,
}: Pick<UploadJob, 'upload' | 'run' | 'kind' | 'piece' | 'edition'>): string =>
  inEdition(`${upload}.${String(run).padStart(6, '0')}.${kind}.${String(piece).padStart(3, '0')}`, edition);

/** Edition in which each piece was made, if not the first. */
export type Edits = Readonly<Record<string, number>>;

/** Names that a job reads below its run; `upload` stands for the uploaded file. */
export function readsOf(job: UploadJob, pieces: number, edits: Edits = {}): ('upload' | OutcomeName)[] {
  if (job.kind === 'plan' || job.kind === 'detect') return ['upload'];
  if (job.kind === 'work') return [inEdition(`pieces/${job.piece ?? 0}`, job.edition ?? 0)];
  const results = Array.from({ length: pieces }, (_, piece) => inEdition(`results/${piece}`, edits[piece] ?? 0));
  return ['plan', ...results];
}

/** Names that a job may write below its run, each once. */
export function writesOf(job: UploadJob): OutcomeName[] {
  const { edition = 0 } = job;
  if (job.kind === 'work') return [inEdition(`results/${job.piece ?? 0}`, edition), 'refusal'];
  if (job.kind === 'detect') return ['language', 'refusal'];
  if (job.kind === 'merge') return [inEdition('transcript', edition), 'refusal'];
  const pieces = Array.from({ length: piecesMax(job.upload) }, (_, piece): OutcomeName => `pieces/${piece}`);
  return ['plan', ...(isUploadId(job.upload) ? ['transcript' as const] : []), 'refusal', ...pieces];
}

/** Prefix of the names of a zone's queues. */
export const zoneQueues = (prefix: string, zone: string): string => `${prefix}-${zone}-`;
/**
 * Returns the queue of a model in a zone. Models need separate queues, because returning a message counts as
 * a try: five agents without the model would dead-letter its job.
 */
export const jobQueue = (prefix: string, zone: string, model = ''): string =>
  `${zoneQueues(prefix, zone)}${queueWord(model)}`;
/** Queue of jobs that pools without accelerators take first. */
export const lightQueue = (prefix: string, zone: string, model = ''): string =>
  `${jobQueue(prefix, zone, model)}-light`;
/** Dead-letter queue of a zone. */
export const deadQueue = (prefix: string, zone: string): string => `${zoneQueues(prefix, zone)}dlq`;

/**
 * Encodes a model for a queue name of at most 80 characters from a small alphabet; a digest separates names
 * that would collide.
 */
function queueWord(model: string): string {
  const digest = sha256(new TextEncoder().encode(model)).subarray(0, 5);
  return `${model.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 24)}-${toHex(digest)}`;
}
