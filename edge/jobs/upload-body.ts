import { z } from 'zod';
import {
  CALLBACK_CHARACTERS,
  FILENAME_CHARACTERS,
  type NewUpload,
  transcriptFormats,
  UPLOAD_BYTES,
} from '../../shared/jobs/upload-contract.ts';
import { zoneName } from '../../shared/names.ts';
import { allowsLanguage, isOpen } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass, classes, UPLOAD_KEEP_DAYS } from '../../shared/tenant/claims.ts';
import { refuseField } from '../http/refuse-field.ts';

const format = z.enum(transcriptFormats);

/** Member `callback` of uploads and projects. */
export const callbackField = z
  .url({ protocol: /^https?$/ })
  .max(CALLBACK_CHARACTERS)
  .optional()
  .describe('Receives a notice of the end, signed as standard-webhooks say');

/** Body of `POST /v1/uploads`. */
export const uploadBody = z
  .strictObject({
    model: z.string().min(1).max(128),
    language: z.string().min(1).max(64).optional().describe('BCP 47 tag of the speech'),
    languages: z
      .array(z.string().min(1).max(64))
      .min(1)
      .max(16)
      .optional()
      .describe('BCP 47 tags: with a family as the model the speech is in one of them'),
    filename: z.string().max(FILENAME_CHARACTERS).optional(),
    content_type: z.string().max(128).optional(),
    bytes: z
      .number()
      .int()
      .min(1)
      .max(UPLOAD_BYTES)
      .optional()
      .describe('Size of the file as sent; checked on arrival'),
    sealed: z.boolean().default(true).describe('false: the file is sent unsealed; the token must allow it'),
    formats: z.array(format).min(1).max(transcriptFormats.length).default(['json']),
    callback: callbackField,
    priority: z.enum(classes).default('batch'),
    zone: zoneName.optional().describe('Zone that stores and processes the audio; the token must allow it'),
    keep_days: z
      .number()
      .int()
      .min(0)
      .max(UPLOAD_KEEP_DAYS)
      .default(0)
      .describe('Days the audio stays after the end; the token may allow fewer'),
  })
  .meta({
    not: { required: ['sealed', 'keep_days'], properties: { sealed: { const: false }, keep_days: { minimum: 1 } } },
  });
export type UploadBody = z.infer<typeof uploadBody>;

/** An upload for a model, or for a family with its members in the zone. */
export interface ServedUpload extends Omit<UploadBody, 'languages'> {
  readonly members?: Readonly<Record<string, string>> | undefined;
  readonly languages?: readonly string[] | undefined;
}

/** Parses the body and checks it against the token. Another step checks that the model exists. */
export function readUploadBody(json: unknown, claims: Claims): Result<UploadBody> {
  const parsed = uploadBody.safeParse(json);
  if (!parsed.success) return no(refuseField(parsed.error, json));
  const { sealed, keep_days: keepDays, language } = parsed.data;
  if (!isOpen(language) && !allowsLanguage(claims.languages, language)) {
    return no(refuse('language_forbidden', { language }));
  }
  if (!sealed && (claims.uploads === 'sealed' || claims.sealing === 'client')) return no(refuse('sealing_required'));
  if (!sealed && keepDays > 0) {
    return no(refuse('field_invalid', { field: 'keep_days', rule: 'only sealed audio is kept' }));
  }
  if (keepDays > claims.keepDays) {
    return no(refuse('field_invalid', { field: 'keep_days', rule: `at most ${claims.keepDays} are allowed` }));
  }
  return ok(parsed.data);
}

/** Returns the request to the functions. */
export function newUploadOf(
  body: ServedUpload,
  claims: Claims,
  place: {
    readonly id: string;
    readonly zone: string;
    readonly home: string;
    readonly commitment?: string;
  },
): NewUpload {
  const { model, language, members, languages, bytes, sealed, formats, callback } = body;
  const { filename, content_type: contentType } = body;
  const { tenant, subject } = claims;
  const { uploadsAtOnce: open, uploadBytesAtOnce: most, audioSecondsPerDay: seconds } = claims.allowance;
  return {
    ...place,
    tenant,
    ...(subject !== undefined && { subject }),
    class: clampClass(body.priority, claims.priority),
    model,
    ...(!isOpen(language) && { language }),
    ...(members && { members: { ...members }, ...(languages && { languages: [...languages] }) }),
    ...(filename !== undefined && { filename }),
    ...(contentType !== undefined && { contentType }),
    ...(bytes !== undefined && { bytes }),
    sealed,
    formats: [...new Set(formats)],
    ...(callback !== undefined && { callback }),
    ...((open ?? most ?? seconds) !== undefined && {
      most: {
        ...(open !== undefined && { open }),
        ...(most !== undefined && { bytes: most }),
        // The seconds are booked at the end: until then nothing else bounds how far a small file unpacks.
        ...(seconds !== undefined && { seconds }),
      },
    }),
    keepDays: body.keep_days,
  };
}
