import { z } from 'zod';
import { uploadStatuses } from '../../shared/jobs/state.ts';
import {
  transcriptFormats,
  type UploadGrant,
  type UploadRow,
  type Waiting,
  waitingFor,
} from '../../shared/jobs/upload-contract.ts';
import { publicText, refuse } from '../../shared/refusal.ts';

const time = z.iso.datetime().describe('RFC 3339, UTC');

/** Cause of waiting: in the answer about one upload or project, not in lists and events. */
export const waitingStatus = z
  .object({
    for: z
      .enum(waitingFor)
      .describe(
        'upload: the file is not in storage; slot: the tenant has as many jobs in the queue as it may; ' +
          'queue: the job queue has not taken the job; pool: no agent of a pool works on it',
      ),
    since: time,
  })
  .describe('Cause of the wait; absent while a pool works on the upload, and after its end');

export const attempts = z.number().int().describe('Deliveries of the notice to the callback that were tried');

/** Status of an upload for its owner: parameters and progress, never the transcript. */
export const uploadStatus = z.object({
  object: z.literal('upload'),
  id: z.string(),
  status: z.enum(uploadStatuses),
  model: z.string(),
  language: z.string().optional(),
  language_confidence: z.number().optional().describe('Probability of a language that was detected'),
  filename: z.string().optional(),
  zone: z.string(),
  sealed: z.boolean(),
  formats: z.array(z.enum(transcriptFormats)),
  created: time,
  updated: time,
  expires: time.describe('Deadline for sending the file'),
  ended: time.optional(),
  bytes: z.number().int().optional(),
  seconds: z.number().optional().describe('Seconds of audio'),
  pieces: z.object({ total: z.number().int(), done: z.number().int() }),
  warnings: z.array(z.string()).describe('Properties of the audio that reduce accuracy: lossy, rate_low, resampled'),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  audio: z.enum(['none', 'held', 'deleted']),
  transcript: z.enum(['none', 'held', 'deleted']),
  callback: z.enum(['none', 'pending', 'delivered', 'failed']),
  callback_attempts: attempts.optional(),
  waiting: waitingStatus.optional(),
  run: z.number().int(),
  seq: z.number().int().describe('Rises with every change'),
});
export type UploadStatus = z.infer<typeof uploadStatus>;

export const listedUploads = z.object({
  object: z.literal('list'),
  data: z.array(uploadStatus),
  next: z.string().optional().describe('`after` of the next page'),
});

/** Answer to `POST /v1/uploads`. */
export const grantedUpload = z.object({
  object: z.literal('upload'),
  id: z.string(),
  status: z.literal('granted'),
  url: z
    .string()
    .describe('Address to PUT the file to, whole or by blocks (Azure Blob Storage); a secret until it expires'),
  headers: z.record(z.string(), z.string()).describe('Headers of that PUT'),
  expires: time,
  max_bytes: z.number().int(),
  tenant: z.string().describe('Goes into the head of a sealed file, with the id and the name `upload`'),
  zone: z.string(),
  sealed: z.boolean(),
  zone_key: z.object({ kid: z.string(), jwk: z.record(z.string(), z.string()) }).optional(),
  status_url: z.string(),
  webhook_secret: z.string().optional().describe('Checks the notices to the callback'),
});

const iso = (at: number) => new Date(at).toISOString();

/** Delivery attempts of a notice, if there is one. */
export const renderAttempts = ({ notice, noticeTries }: Pick<UploadRow, 'notice' | 'noticeTries'>) =>
  notice !== 'none' && noticeTries !== undefined && { callback_attempts: noticeTries };

export const renderWaiting = ({ waiting }: { readonly waiting?: Waiting | undefined }) =>
  waiting && { waiting: { for: waiting.for, since: iso(waiting.since) } };

export function renderUpload(row: UploadRow): UploadStatus {
  const { id, status, model, zone, sealed, formats, warnings, audio, transcript, run, seq, refusal } = row;
  return {
    object: 'upload',
    id,
    status,
    model,
    ...(row.language !== undefined && { language: row.language }),
    ...(row.languageConfidence !== undefined && { language_confidence: row.languageConfidence }),
    ...(row.filename !== undefined && { filename: row.filename }),
    zone,
    sealed,
    formats,
    created: iso(row.created),
    updated: iso(row.updated),
    expires: iso(row.expires),
    ...(row.ended !== undefined && { ended: iso(row.ended) }),
    ...(row.bytes !== undefined && { bytes: row.bytes }),
    ...(row.seconds !== undefined && { seconds: row.seconds }),
    pieces: { total: row.pieces, done: row.piecesDone },
    warnings,
    ...(refusal && {
      error: { code: refusal.reason, message: publicText(refuse(refusal.reason, refusal.params)) },
    }),
    audio,
    transcript,
    callback: row.notice,
    ...renderAttempts(row),
    ...renderWaiting(row),
    run,
    seq,
  };
}

export function renderGrant(
  grant: UploadGrant,
  facts: { tenant: string; zone: string; sealed: boolean; origin: string },
): z.infer<typeof grantedUpload> {
  const { id, url, headers, expires, maxBytes, zoneKey, webhookSecret } = grant;
  const { tenant, zone, sealed, origin } = facts;
  return {
    object: 'upload',
    id,
    status: 'granted',
    url,
    headers,
    expires: iso(expires),
    max_bytes: maxBytes,
    tenant,
    zone,
    sealed,
    ...(zoneKey && { zone_key: zoneKey }),
    status_url: `${origin}/v1/uploads/${id}`,
    ...(webhookSecret !== undefined && { webhook_secret: webhookSecret }),
  };
}
