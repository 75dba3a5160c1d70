// Metadata of outcome blobs, the functions' only knowledge of an agent's work. Names and numbers; never text
// or audio. Blob metadata are headers: names in lower case, values in ASCII.
import { z } from 'zod';
import { isReason, type Reason, type Refusal } from '../refusal.ts';
import { PROJECT_SEGMENTS_MAX, UPLOAD_PIECES_MAX } from './limits.ts';

const count = z.coerce.number().int().min(0);

/** A remark on the recording that its owner may want to know (M6), such as `lossy`, `rate_low` or `resampled`. */
export const warning = z.string().regex(/^[a-z][a-z0-9_]{0,31}$/);

const outcomeMetadata = z.object({
  /** Number of pieces, at least one; in `plan`. */
  pieces: count.max(Math.max(UPLOAD_PIECES_MAX, PROJECT_SEGMENTS_MAX)).optional(),
  /** Numbers of segments of a document's blocks, separated by commas; in `plan`. */
  blocks: z
    .string()
    .regex(/^[1-9]\d{0,3}(,[1-9]\d{0,3})*$/)
    .max(4_096)
    .transform((text) => text.split(',').map(Number))
    .optional(),
  /** Seconds of sound: of the recording in `plan` and `transcript`, of the piece in `results/N`. */
  seconds: z.coerce.number().min(0).optional(),
  /** Bytes of the uploaded file that were read, in `plan` and `transcript`. */
  bytes: count.optional(),
  /** Detected language (BCP 47; `zxx` without speech) and its probability; in `language`. */
  language: z.string().max(35).optional(),
  confidence: z.coerce.number().min(0).max(1).optional(),
  /** Agent that wrote it. */
  agent: z.string().max(63).optional(),
  /** Warnings separated by commas; in `plan` and `transcript`. */
  warnings: z
    .string()
    .max(512)
    .transform((text) => text.split(',').filter(Boolean))
    .pipe(z.array(warning).max(16))
    .optional(),
  /** Reason of `shared/refusal/`; in `refusal`. */
  reason: z.string().refine(isReason).optional(),
  /** Parameters of the refusal text as JSON; in `refusal`. */
  params: z.string().max(1_024).optional(),
});

export interface OutcomeFacts {
  readonly pieces?: number | undefined;
  readonly blocks?: readonly number[] | undefined;
  readonly seconds?: number | undefined;
  readonly bytes?: number | undefined;
  readonly language?: string | undefined;
  readonly confidence?: number | undefined;
  readonly agent?: string | undefined;
  readonly warnings?: readonly string[] | undefined;
  readonly refusal?: Refusal | undefined;
}

const refusalParams = z.record(z.string().max(32), z.union([z.string().max(200), z.number()]));

/** @returns `undefined` for metadata that no agent of ours writes. */
export function readOutcome(metadata: Readonly<Record<string, string>>): OutcomeFacts | undefined {
  const { data } = outcomeMetadata.safeParse(metadata);
  if (!data) return undefined;
  const { reason, params, ...facts } = data;
  const { pieces = 0, blocks } = facts;
  const known = blocks ? blocks.reduce((sum, one) => sum + one) === pieces : pieces <= UPLOAD_PIECES_MAX;
  if (!known) return undefined;
  if (reason === undefined) return facts;
  return { ...facts, refusal: { reason: reason as Reason, ...readParams(params) } };
}

function readParams(text: string | undefined): { params: Record<string, string | number> } | undefined {
  if (text === undefined) return undefined;
  try {
    const { data } = refusalParams.safeParse(JSON.parse(text));
    return data && { params: data };
  } catch {
    return undefined;
  }
}

/** Metadata of an outcome. Parameters that are not ASCII are left out, since headers cannot carry them. */
export function outcomeMetadataOf(facts: OutcomeFacts): Record<string, string> {
  const { pieces, blocks, seconds, bytes, language, confidence, agent, warnings = [], refusal } = facts;
  const params = refusal?.params && JSON.stringify(refusal.params);
  return {
    ...(pieces !== undefined && { pieces: String(pieces) }),
    ...(blocks && { blocks: blocks.join(',') }),
    ...(seconds !== undefined && { seconds: String(Math.round(seconds * 1_000) / 1_000) }),
    ...(bytes !== undefined && { bytes: String(bytes) }),
    ...(language !== undefined && { language }),
    ...(confidence !== undefined && { confidence: String(confidence) }),
    ...(agent !== undefined && { agent }),
    ...(warnings.length > 0 && { warnings: warnings.slice(0, 16).join(',') }),
    ...(refusal && { reason: refusal.reason }),
    ...(params && params.length <= 1_024 && /^[\x20-\x7e]*$/.test(params) && { params }),
  };
}
