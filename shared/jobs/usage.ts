// Usage of a finished run of an upload or a spoken document, sent by the functions to the edge. `POST /v1/usage` at the edge, with
// `authorization: Bearer <JWT>`: ES256, header `typ` and `kid` as in callers.ts, claims `iss`, `aud`, `iat`,
// `exp` and `tenant`. It is repeated until the answer is 200; the edge books each run once.
import { z } from 'zod';
import { tenantName, zoneName } from '../names.ts';
import { classes } from '../tenant/claims.ts';
import { UPLOAD_S } from './limits.ts';
import { isUploadId } from './paths.ts';
import { isDocumentId } from './project-id.ts';

export const FUNCTIONS_ISSUER = 'auricle-functions';
export const EDGE_AUDIENCE = 'auricle-edge';

export const uploadUsage = z.object({
  tenant: tenantName,
  /** Id of the upload or document. */
  upload: z.string().refine((id) => isUploadId(id) || isDocumentId(id), 'must be the id of an upload or a document'),
  run: z.number().int().min(1).max(999_999),
  /** Edition of a document that was changed. */
  edition: z.number().int().min(1).optional(),
  /** Zone of the tenant's allowance, as the edge stated with the upload. */
  home: zoneName,
  subject: z.string().max(256).optional(),
  class: z.enum(classes),
  model: z.string().min(1).max(128),
  language: z.string().min(1).max(64).optional(),
  /** HTTP status: 200 for a transcript, that of the refusal, or 499 after a cancellation. */
  status: z.number().int(),
  /** Absent when there is a transcript. */
  reason: z.string().max(64).optional(),
  /** Seconds of sound that were recognised or made for the tenant: none without a result. */
  seconds: z
    .number()
    .min(0)
    .max(2 * UPLOAD_S),
  /** Size of the file. */
  bytes: z.number().int().min(0),
  /** Duration from the grant to the end. */
  milliseconds: z.number().min(0),
});
export type UploadUsage = z.infer<typeof uploadUsage>;

/** Names what is booked: each run and edition once. */
export const usageKey = ({ upload, run, edition }: Pick<UploadUsage, 'upload' | 'run' | 'edition'>): string =>
  edition === undefined ? `${upload}.${run}` : `${upload}.${run}.${edition}`;

export const bookedUsage = z.object({ booked: z.boolean() });
