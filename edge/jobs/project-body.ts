import { z } from 'zod';
import { MiB } from '../../shared/bytes.ts';
import {
  type DocumentText,
  documentBlocks,
  plainDocument,
  readDocument,
  SPEAKABLE,
} from '../../shared/jobs/document.ts';
import { PROJECT_DOCUMENTS_MAX } from '../../shared/jobs/limits.ts';
import { type NewProject, newSegment, title } from '../../shared/jobs/project-contract.ts';
import { PROJECT_GAP_MS } from '../../shared/jobs/speech.ts';
import { PROJECT_SEGMENT_CHARACTERS } from '../../shared/jobs/split-text.ts';
import { zoneName } from '../../shared/names.ts';
import { allowsLanguage, isOpen } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass, classes } from '../../shared/tenant/claims.ts';
import { refuseField } from '../http/refuse-field.ts';
import { callbackField } from './upload-body.ts';

/**
 * Project with its text, in memory while it is read and sealed: twice a long novel. Sealed files go
 * elsewhere.
 */
export const PROJECT_BODY_BYTES = 2 * MiB;

const gap = z.number().int().min(0).max(PROJECT_GAP_MS);

const documentBody = z.strictObject({
  title: title.optional().describe('Stored unencrypted beside the document'),
  text: plainDocument.optional().describe('Plain text: blank lines separate blocks; each sentence is a segment'),
  blocks: documentBlocks.optional().describe('Blocks, each as text or as segments'),
  content_type: z
    .enum(['text/plain', 'application/json'])
    .default('text/plain')
    .describe('Content of a sealed file: plain text, or `{"v":1,"blocks":[…]}`'),
});

/** JSON Schema of the two ways that documents come: sealed and put elsewhere, or each as text or blocks. */
const sealedElsewhere = {
  properties: {
    sealed: { const: true },
    documents: { items: { not: { anyOf: [{ required: ['text'] }, { required: ['blocks'] }] } } },
  },
  required: ['sealed'],
};
const sentHere = {
  properties: {
    sealed: { const: false },
    documents: { items: { oneOf: [{ required: ['text'] }, { required: ['blocks'] }] } },
  },
};

/** Body of `POST /v1/projects`. */
export const projectBody = z
  .strictObject({
    model: z.string().min(1).max(128).describe('A voice'),
    voice: z.string().min(1).max(64).optional().describe('One of the voices of the model'),
    rate: z.number().min(0.5).max(2).optional().describe('2 is twice as fast'),
    language: z.string().min(1).max(64).optional().describe('BCP 47 tag of the text'),
    title: title.optional(),
    gaps: z
      .strictObject({ segment_ms: gap.default(250), block_ms: gap.default(700) })
      .prefault({})
      .describe('Silence between two segments of a block, and between two blocks'),
    sealed: z
      .boolean()
      .default(false)
      .describe('true: the request has no text; the client seals each document and PUTs it to the returned address'),
    documents: z.array(documentBody).min(1).max(PROJECT_DOCUMENTS_MAX),
    callback: callbackField,
    priority: z.enum(classes).default('batch'),
    zone: zoneName.optional().describe('Zone that stores and speaks the text; the token must allow it'),
  })
  .meta({ anyOf: [sealedElsewhere, sentHere] });
export type ProjectBody = z.infer<typeof projectBody>;

export interface RequestedProject {
  readonly body: ProjectBody;
  /** Texts, in order; `undefined` when they are sealed and uploaded separately. */
  readonly texts: readonly DocumentText[] | undefined;
}

/** Reports whether text may reach the edge unsealed: under the rule of plain files. */
export const mayBePlain = ({ uploads, sealing }: Claims): boolean => uploads !== 'sealed' && sealing !== 'client';

/** Parses the body and checks it against the token. Another step checks that the voice exists. */
export function readProjectBody(json: unknown, claims: Claims): Result<RequestedProject> {
  const parsed = projectBody.safeParse(json);
  if (!parsed.success) return no(refuseField(parsed.error, json));
  const body = parsed.data;
  const { language, sealed, documents } = body;
  if (!isOpen(language) && !allowsLanguage(claims.languages, language))
    return no(refuse('language_forbidden', { language }));
  if (sealed) {
    const shown = documents.findIndex(({ text, blocks }) => text !== undefined || blocks !== undefined);
    if (shown < 0) return ok({ body, texts: undefined });
    return no(refuse('field_invalid', { field: `documents.${shown}`, rule: 'has text, and is to be sealed' }));
  }
  if (!mayBePlain(claims)) return no(refuse('sealing_required'));
  const texts: DocumentText[] = [];
  for (const [index, { text, blocks }] of documents.entries()) {
    if ((text === undefined) === (blocks === undefined))
      return no(refuse('field_invalid', { field: `documents.${index}`, rule: 'needs either text or blocks' }));
    const read = readDocument(text ?? blocks ?? '');
    if (!read.ok) return read;
    texts.push(read.value);
  }
  return ok({ body, texts });
}

/** Returns the request to the functions. */
export function newProjectOf(
  { body, texts }: RequestedProject,
  claims: Claims,
  id: string,
  { zone, home, light, commitment }: { zone: string; home: string; light: boolean; commitment?: string | undefined },
): NewProject {
  const { model, language, callback, voice, rate, gaps, title: name, documents } = body;
  const { tenant, subject } = claims;
  return {
    id,
    tenant,
    ...(subject !== undefined && { subject }),
    ...(commitment !== undefined && { commitment }),
    class: clampClass(body.priority, claims.priority),
    model,
    ...(!isOpen(language) && { language }),
    ...(callback !== undefined && { callback }),
    zone,
    home,
    project: {
      ...(name !== undefined && { title: name }),
      ...(voice !== undefined && { voice }),
      ...(rate !== undefined && { rate }),
      gaps: { segment: gaps.segment_ms, block: gaps.block_ms },
      light,
      documents: documents.map((one) => ({
        ...(one.title !== undefined && { title: one.title }),
        // Text parsed here continues as JSON.
        contentType: texts ? 'application/json' : one.content_type,
      })),
    },
  };
}

/** Body of a change of a segment: its text, or a sealed file of it for the next edition of its document. */
export const segmentBody = z.union([
  z.strictObject({
    text: z
      .string()
      .max(PROJECT_BODY_BYTES)
      .meta({ pattern: SPEAKABLE, maxLength: PROJECT_SEGMENT_CHARACTERS })
      .describe('One sentence, which does not begin with markup; line breaks are spaces'),
  }),
  z.strictObject({
    edition: z.number().int().min(1).max(999_999).describe('The edition of the document plus one'),
    sealed: newSegment.shape.file.describe('A sealed file of the name `<run>/pieces/<segment>-<edition>`'),
  }),
]);
