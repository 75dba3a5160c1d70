// Requests of the edge to the functions about exports.
//
//   POST /api/audit/exports/{zone}                             newExport → 202 exportStatus
//   GET  /api/audit/exports/{zone}/{tenant}                    → {data: exportStatus[]}
//   GET  /api/audit/exports/{zone}/{tenant}/{id}               → exportStatus
//   GET  /api/audit/exports/{zone}/{tenant}/{id}/files/{path}  → the file
//   GET  /api/audit/stream/{zone}/{tenant}?from=CURSOR         → streamPage
import { z } from 'zod';
import { formatNames } from '../derived/formats.ts';
import { logYear } from '../logged-years.ts';
import { plainText } from '../plain-text.ts';
import { readCursor } from './cursor.ts';

/** Purpose of an export, in words: a sentence or a reference to a case. */
export const EXPORT_PURPOSE_CHARACTERS = 500;

/** Disclosed members: all, none, or those listed. */
export const redactionProfile = z
  .string()
  .max(512)
  .regex(/^(full|auditor-min|fields:[A-Za-z][A-Za-z0-9_.-]*(,[A-Za-z][A-Za-z0-9_.-]*)*)$/);

const time = z.number().int().min(0);
const tseq = z.number().int().min(1);

/** Times are the log's, in epoch ms; numbers are the tenant's. */
export const exportQuery = z.object({
  /** Year of the log; by default the newest at the time of the request. */
  year: logYear.optional(),
  from: time.optional(),
  to: time.optional(),
  tseq_from: tseq.optional(),
  tseq_to: tseq.optional(),
});

export const newExport = z.object({
  tenant: z.string(),
  /** Id of the request at the edge. */
  request: z.string().max(128),
  purpose: plainText(EXPORT_PURPOSE_CHARACTERS),
  formats: z.array(z.enum(formatNames)).max(formatNames.length),
  redaction: redactionProfile,
  query: exportQuery,
  /** Size of a checkpoint that the reader holds: the bundle proves growth from it. */
  known_size: z.number().int().min(1).optional(),
});
export type NewExport = z.infer<typeof newExport>;

const exportStates = ['accepted', 'running', 'done', 'failed', 'expired'] as const;

export const exportStatus = z.object({
  id: z.string(),
  tenant: z.string(),
  zone: z.string(),
  state: z.enum(exportStates),
  created: z.string(),
  purpose: z.string(),
  redaction: z.string(),
  formats: z.array(z.string()),
  /** The tenant's entries collected so far, and entries of the log scanned. */
  entries: z.number().int(),
  scanned: z.number().int(),
  /** Size of the log, once the end of the export is known. */
  size: z.number().int().optional(),
  reason: z.string().optional(),
  /** Expiry of its files. */
  expires: z.string().optional(),
  files: z.array(z.object({ path: z.string(), bytes: z.number().int(), sha256: z.string() })).optional(),
});
export type ExportStatus = z.infer<typeof exportStatus>;

/** A leaf of the tenant in a stream: CloudEvents 1.0, with the leaf and its position as data. */
export const streamedLeaf = z.object({
  specversion: z.literal('1.0'),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string().optional(),
  time: z.string(),
  datacontenttype: z.literal('application/json'),
  data: z.object({ log: z.string(), index: z.number().int(), leaf_hash: z.string(), leaf: z.unknown() }),
});

export const streamPage = z.object({
  data: z.array(streamedLeaf),
  /** Year of the log. */
  year: z.number().int(),
  /** Cursor of the next page: `cursor.ts`. */
  next: z.string().refine((text) => readCursor(text)?.year !== undefined),
  /** All present entries were read. */
  ended: z.boolean(),
});
export type StreamPage = z.infer<typeof streamPage>;
