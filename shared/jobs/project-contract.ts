// Requests of the edge to the functions about text projects, and their answers. Callers and refusals as in
// upload-contract.ts. A document shares jobs, outcomes and agent requests with uploads.
//
//   POST   /api/projects                                  newProject   → 201 projectGrant
//   GET    /api/projects/{tenant}?after=ID&limit=N                     → 200 projectList, newest first
//   GET    /api/projects/{tenant}/{id}                                 → 200 projectRow
//   GET    /api/projects/{tenant}/{id}/events?after=SEQ&wait=SECONDS   → 200 projectRow once its seq is larger, else 204
//   DELETE /api/projects/{tenant}/{id}                                 → 200 projectRow
//   POST   /api/projects/{tenant}/{id}/rerun                           → 200 projectRow
//   POST   /api/projects/{tenant}/{id}/documents/{d}/open              → 200 openedDocument
//   PUT    /api/projects/{tenant}/{id}/documents/{d}/segments/{s}  newSegment → 200 projectRow
import { z } from 'zod';
import { commitment } from '../audit/privacy.ts';
import { KiB } from '../bytes.ts';
import { tenantName, zoneName } from '../names.ts';
import { isReason, type Reason } from '../refusal.ts';
import { zoneKey } from '../seal/zone-key.ts';
import { classes } from '../tenant/claims.ts';
import { DOCUMENT_JSON, DOCUMENT_TEXT } from './document.ts';
import { workId } from './job.ts';
import { PROJECT_DOCUMENTS_MAX } from './limits.ts';
import { isProjectId } from './project-id.ts';
import { speech } from './speech.ts';
import { uploadStatuses } from './state.ts';
import { CALLBACK_CHARACTERS, FILENAME_CHARACTERS, fingerprint, waiting } from './upload-contract.ts';

/**
 * Sealed segment: PROJECT_SEGMENT_CHARACTERS of four bytes, its head and its records, with room for longer
 * names.
 */
export const PROJECT_EDIT_BYTES = 8 * KiB;

const projectId = z.string().refine(isProjectId, 'must be the id of a project');
/** Titles are stored beside a project in the clear, like file names of uploads. */
export const title = z.string().min(1).max(FILENAME_CHARACTERS);

export const newProject = z.object({
  id: projectId,
  tenant: tenantName,
  subject: z.string().max(256).optional(),
  commitment: commitment.optional(),
  class: z.enum(classes),
  model: z.string().min(1).max(128),
  language: z.string().min(1).max(64).optional(),
  callback: z.url().max(CALLBACK_CHARACTERS).optional(),
  zone: zoneName,
  /** Zone of the tenant's allowance, if it is another. */
  home: zoneName.optional(),
  project: z.object({
    title: title.optional(),
    ...speech.omit({ document: true }).shape,
    documents: z
      .array(z.object({ title: title.optional(), contentType: z.enum([DOCUMENT_JSON, DOCUMENT_TEXT]) }))
      .min(1)
      .max(PROJECT_DOCUMENTS_MAX),
  }),
  fingerprint: fingerprint.optional(),
});
export type NewProject = z.infer<typeof newProject>;

const plainRefusal = z.object({
  reason: z.custom<Reason>(isReason),
  params: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
});

const documentRow = z.object({
  id: workId,
  index: z.number().int(),
  title: z.string().optional(),
  status: z.enum(uploadStatuses),
  /** Rises with every change of its text and every rerun. */
  edition: z.number().int(),
  segments: z.number().int(),
  segmentsDone: z.number().int(),
  blocks: z.array(z.object({ segments: z.number().int(), done: z.number().int() })),
  seconds: z.number().optional(),
  refusal: plainRefusal.optional(),
  audio: z.enum(['none', 'held', 'deleted']),
  waiting: waiting.optional(),
});
export type DocumentRow = z.infer<typeof documentRow>;

/** `working` until all documents have ended; then `done`, or `refused` when one of them was. */
export const projectStatuses = ['working', 'done', 'refused', 'cancelled'] as const;

export const projectRow = z.object({
  id: projectId,
  tenant: tenantName,
  status: z.enum(projectStatuses),
  run: z.number().int(),
  seq: z.number().int(),
  zone: zoneName,
  class: z.enum(classes),
  model: z.string(),
  language: z.string().optional(),
  callback: z.string().optional(),
  project: newProject.shape.project,
  created: z.number().int(),
  updated: z.number().int(),
  ended: z.number().int().optional(),
  seconds: z.number().optional(),
  refusal: plainRefusal.optional(),
  notice: z.enum(['none', 'pending', 'delivered', 'failed']),
  noticeTries: z.number().int().optional(),
  /** Longest wait of its documents while no agent works on any. */
  waiting: waiting.optional(),
  documents: z.array(documentRow),
  /** Public key to seal changes to. */
  zoneKey: zoneKey.optional(),
});
export type ProjectRow = z.infer<typeof projectRow>;

export const projectList = z.object({ projects: z.array(projectRow), next: projectId.optional() });
export type ProjectList = z.infer<typeof projectList>;

export const projectGrant = z.object({
  project: projectRow,
  /** Upload targets of the documents, in order; see `uploadGrant`. */
  documents: z.array(
    z.object({
      id: workId,
      url: z.url(),
      headers: z.record(z.string(), z.string()),
      expires: z.number().int(),
      maxBytes: z.number().int(),
    }),
  ),
  zoneKey,
  webhookSecret: z.string().optional(),
});
export type ProjectGrant = z.infer<typeof projectGrant>;

/** Another text for a segment: a sealed file of the name `1/pieces/<s>-<edition>`, in base64. */
export const newSegment = z.object({
  /** One more than the document's edition: the second of two concurrent edits reads it again. */
  edition: z.number().int().min(1).max(999_999),
  file: z.base64().max(Math.ceil((PROJECT_EDIT_BYTES * 4) / 3) + 4),
});
export type NewSegment = z.infer<typeof newSegment>;

export const openedDocument = z.object({
  document: documentRow,
  model: z.string(),
  language: z.string().optional(),
  run: z.number().int(),
  /** Name of the file below the run. */
  name: z.string(),
  read: z.object({ url: z.url(), etag: z.string().optional() }),
  zone: zoneName,
  zoneKeyId: z.string(),
  expires: z.number().int(),
});
export type OpenedDocument = z.infer<typeof openedDocument>;
