// HTTP requests of edge and agents to the functions, and their answers. A refusal is the status of its reason and
// `functionsRefusal`. A call that is no GET bears a deadline (callers.ts). Where storage does not answer, functions refuse
// with `storage_unavailable` before their first write and with `uploads_unavailable` after it.
//
// By the edge (callers.ts):
//   POST   /api/uploads                              newUpload        → 201 uploadGrant
//   GET    /api/uploads/{tenant}?after=ID&limit=N                     → 200 uploadList, newest first
//   GET    /api/uploads/{tenant}/{id}                                 → 200 uploadRow
//   GET    /api/uploads/{tenant}/{id}/events?after=SEQ&wait=SECONDS   → 200 uploadRow once its seq is larger, else 204
//   DELETE /api/uploads/{tenant}/{id}     cancels; of one that is over: deletes what is left of it → 200 uploadRow
//   POST   /api/uploads/{tenant}/{id}/rerun                           → 200 uploadRow
//   POST   /api/uploads/{tenant}/{id}/open                            → 200 openedTranscript, 409 when there is none
// By an agent (callers.ts):
//   POST   /api/jobs/open                            openJob          → 200 openedJob, 409 when it is no longer wanted
import { z } from 'zod';
import { commitment } from '../audit/privacy.ts';
import { KiB, MiB } from '../bytes.ts';
import { tenantName, zoneName } from '../names.ts';
import { isReason, type Reason } from '../refusal.ts';
import { ATTESTATION_CHARACTERS } from '../seal/limits.ts';
import { zoneKey } from '../seal/zone-key.ts';
import { classes, UPLOAD_KEEP_DAYS } from '../tenant/claims.ts';
import { recordId, uploadId, uploadJob, workId } from './job.ts';
import { speech } from './speech.ts';
import { uploadStatuses } from './state.ts';

/**
 * Six hours of 48 kHz 16-bit stereo WAV; the agent reads it as a stream, so it bounds storage and not memory.
 */
export const UPLOAD_BYTES = 4096 * MiB;
/** Callback address: as long as browsers and proxies take. */
export const CALLBACK_CHARACTERS = 2_048;
/** File name: the longest that file systems have. */
export const FILENAME_CHARACTERS = 255;

export const transcriptFormats = ['json', 'text', 'srt', 'vtt'] as const;

/** Digest of a request with an Idempotency-Key. The edge repeats such a request under the id of the first. */
export const fingerprint = z.string().min(1).max(64);

/** Request of the edge for an upload, already checked against the tenant's claims. */
export const newUpload = z.object({
  id: uploadId,
  tenant: tenantName,
  subject: z.string().max(256).optional(),
  /** Commitment of the subject, made by the tenant's gate in the zone: the zone's log has it. */
  commitment: commitment.optional(),
  class: z.enum(classes).default('batch'),
  model: z.string().min(1).max(128),
  language: z.string().min(1).max(64).optional(),
  /** Models of the zone by language where `model` is a family; an agent detects which one serves. */
  members: z.record(z.string().max(64), z.string().max(128)).optional(),
  /** Languages among which it detects; absent: any. */
  languages: z.array(z.string().max(64)).optional(),
  filename: z.string().max(FILENAME_CHARACTERS).optional(),
  contentType: z.string().max(128).optional(),
  /** Size of the stored file, envelope included; checked on arrival. */
  bytes: z.number().int().min(1).max(UPLOAD_BYTES).optional(),
  sealed: z.boolean(),
  formats: z.array(z.enum(transcriptFormats)).min(1).default(['json']),
  /** Receiver of the notice. */
  callback: z.url().max(CALLBACK_CHARACTERS).optional(),
  zone: zoneName,
  /** Zone of the tenant's allowance; returned with the usage (usage.ts). */
  home: zoneName.optional(),
  /** Bounds on the tenant's open uploads, where lower than the general limits. */
  most: z
    .object({
      open: z.number().int().positive(),
      bytes: z.number().int().positive(),
      /** Seconds of audio in one file: the tenant's daily allowance. */
      seconds: z.number().positive(),
    })
    .partial()
    .optional(),
  /** Days that the audio stays after the end; default 0. */
  keepDays: z.number().int().min(0).max(UPLOAD_KEEP_DAYS).default(0),
  /** Facts of the requesting protocol, returned with the row: for example Deepgram's options. No content. */
  dialect: z.string().max(2_048).optional(),
  /**
   * A repeated request with the same id and digest gets the grant of the first, whatever the upload's state.
   */
  fingerprint: fingerprint.optional(),
});
export type NewUpload = z.infer<typeof newUpload>;

export const uploadGrant = z.object({
  id: uploadId,
  /** Address for the PUT of the file: it creates and writes this one blob. A secret until it expires. */
  url: z.url(),
  /** Headers the PUT must have. */
  headers: z.record(z.string(), z.string()),
  /** Milliseconds since 1970. */
  expires: z.number().int(),
  maxBytes: z.number().int(),
  /**
   * Public key to seal to. Functions of a zone without a key take no uploads, since results are sealed to it,
   * too.
   */
  zoneKey: zoneKey.optional(),
  /** Secret with which receivers verify notices to `callback`: `whsec_` and base64 (standard-webhooks). */
  webhookSecret: z.string().optional(),
});
export type UploadGrant = z.infer<typeof uploadGrant>;

const reason = z.custom<Reason>(isReason, 'must be a reason of a refusal');
export const plainRefusal = z.object({
  reason,
  params: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
});

/** `upload`: the file; `slot`: a place among the tenant's queued jobs; `queue`: the job queue; `pool`: an agent of a pool. */
export const waitingFor = ['upload', 'slot', 'queue', 'pool'] as const;
/** Reason and start of a wait. Absent while an agent works on it. */
export const waiting = z.object({ for: z.enum(waitingFor), since: z.number().int() });
export type Waiting = z.infer<typeof waiting>;

export const uploadRow = z.object({
  id: recordId,
  tenant: tenantName,
  status: z.enum(uploadStatuses),
  run: z.number().int(),
  /** Rises with every change. */
  seq: z.number().int(),
  zone: zoneName,
  model: z.string(),
  language: z.string().optional(),
  /** Probability of `language`, where it was detected. */
  languageConfidence: z.number().optional(),
  class: z.enum(classes),
  filename: z.string().optional(),
  contentType: z.string().optional(),
  sealed: z.boolean(),
  formats: z.array(z.enum(transcriptFormats)),
  callback: z.string().optional(),
  dialect: z.string().optional(),
  keepDays: z.number().int(),
  /** Milliseconds since 1970, all times. */
  created: z.number().int(),
  updated: z.number().int(),
  /** Deadline of the upload of the file. */
  expires: z.number().int(),
  /** Time of the end. */
  ended: z.number().int().optional(),
  bytes: z.number().int().optional(),
  seconds: z.number().optional(),
  pieces: z.number().int(),
  piecesDone: z.number().int(),
  warnings: z.array(z.string()),
  refusal: plainRefusal.optional(),
  /** State of the audio: not uploaded, stored or deleted. */
  audio: z.enum(['none', 'held', 'deleted']),
  transcript: z.enum(['none', 'held', 'deleted']),
  /** Deliveries of the notice to `callback`. */
  notice: z.enum(['none', 'pending', 'delivered', 'failed']),
  /** Number of deliveries. */
  noticeTries: z.number().int().optional(),
  /** Only in the answer about one upload. */
  waiting: waiting.optional(),
});
export type UploadRow = z.infer<typeof uploadRow>;

/** `next` is `after` of the next page; absent on the last. */
export const uploadList = z.object({ uploads: z.array(uploadRow), next: uploadId.optional() });
export type UploadList = z.infer<typeof uploadList>;

/** Address of a blob and its required version, which the reader sends as `if-match`. */
export const readAt = z.object({ url: z.url(), etag: z.string().optional() });

export const openedTranscript = z.object({
  upload: uploadRow,
  read: readAt,
  /** Zone whose agents alone can open it. */
  zone: zoneName,
  zoneKeyId: z.string(),
  expires: z.number().int(),
});
export type OpenedTranscript = z.infer<typeof openedTranscript>;

/** `proof` is the compact JWS of callers.ts. */
/** A job, which takes 1 KiB, and its proof. */
export const OPEN_JOB_BYTES_MAX = 2 * ATTESTATION_CHARACTERS + 8 * KiB;
export const openJob = z.object({ job: uploadJob, proof: z.string().max(2 * ATTESTATION_CHARACTERS) });

export const openedJob = z.object({
  upload: z.object({
    tenant: tenantName,
    id: workId,
    run: z.number().int(),
    model: z.string(),
    /** `zxx`: an agent found no speech. */
    language: z.string().optional(),
    languageConfidence: z.number().optional(),
    /** Languages among which a `detect` job chooses; absent: any. */
    languages: z.array(z.string()).optional(),
    class: z.enum(classes),
    contentType: z.string().optional(),
    filename: z.string().optional(),
    /** The file is an envelope; pieces, results and transcripts always are. */
    sealed: z.boolean(),
    /** Size of the file. */
    bytes: z.number().int(),
    /** Longest audio it may unpack to, where less than `UPLOAD_S`. */
    secondsMax: z.number().positive().optional(),
    formats: z.array(z.enum(transcriptFormats)),
    /** Key to which the agent seals its outputs. */
    zoneKeyId: z.string(),
    pieces: z.number().int(),
    /** Speech settings of a document. Absent in jobs of transcription. */
    speech: speech.optional(),
    /** Edition in which each piece was made, if not the first. */
    edits: z.record(z.string(), z.number().int()).optional(),
  }),
  /** Addresses to read, by name: `upload`, `pieces/N`, `plan`, `results/N` (job.ts). */
  read: z.record(z.string(), readAt),
  /**
   * Addresses to write, by name. Each creates one blob, with PUT, `x-ms-blob-type: BlockBlob`,
   * `if-none-match: *` and the metadata of outcome.ts as `x-ms-meta-*`. An address never replaces: 409 and
   * 403 mean that the blob exists, written by another agent or an earlier try, which counts as done.
   */
  write: z.record(z.string(), z.object({ url: z.url() })),
  /** Expiry of the addresses, epoch ms; afterwards the agent opens the job again. */
  expires: z.number().int(),
});
export type OpenedJob = z.infer<typeof openedJob>;

export const functionsRefusal = z.object({ error: plainRefusal });
