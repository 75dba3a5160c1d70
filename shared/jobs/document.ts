// Text of a document as sent and as stored in its sealed file: JSON with blocks and segments, or plain text
// that is split here. Edge and agents validate it here.
import { z } from 'zod';
import { KiB } from '../bytes.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { isMarkup } from '../speech/speak.ts';
import { PROJECT_SEGMENTS_MAX } from './limits.ts';
import { PROJECT_SEGMENT_CHARACTERS, splitBlock, splitText, tidy } from './split-text.ts';

/** Text of one document as it is read, with its JSON: five hours of speech. */
export const PROJECT_DOCUMENT_BYTES = 512 * KiB;

/** Blocks in order, each with its segments in order. */
export interface DocumentText {
  readonly blocks: readonly (readonly string[])[];
}

/** Control characters except line ends and tabs, as a class that JSON Schema readers support. */
const CONTROLS = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f';
/** Pattern of speakable text: at least one non-blank character, and no control characters. */
export const SPEAKABLE = `^[^${CONTROLS}]*[^\\s\\ufeff${CONTROLS}][^${CONTROLS}]*$`;

const characters = z.string().max(PROJECT_DOCUMENT_BYTES);
/** Text that is split here. */
export const plainDocument = characters.meta({ pattern: SPEAKABLE });
const segmentText = characters.meta({ pattern: SPEAKABLE, maxLength: PROJECT_SEGMENT_CHARACTERS });

/** A block is text that is split into segments, or the segments themselves. */
const blockText = z.union([
  z.strictObject({ text: plainDocument }),
  z.strictObject({ segments: z.array(segmentText).max(PROJECT_SEGMENTS_MAX).meta({ minItems: 1 }) }),
]);
/** The schema demands a block; the parser tolerates empty ones among others. */
export const documentBlocks = z.array(blockText).max(PROJECT_SEGMENTS_MAX).meta({ minItems: 1 });
export type DocumentBlocks = z.infer<typeof documentBlocks>;

/** Plaintext of a document's file of the type `application/json`. */
const documentSheet = z.strictObject({ v: z.literal(1), blocks: documentBlocks });

export const DOCUMENT_JSON = 'application/json';
export const DOCUMENT_TEXT = 'text/plain';

export const encodeDocument = ({ blocks }: DocumentText): Uint8Array<ArrayBuffer> =>
  new TextEncoder().encode(JSON.stringify({ v: 1, blocks: blocks.map((segments) => ({ segments })) }));

/** Parses plain text or given blocks. Refuses with `text_empty`, `text_invalid` or `text_too_long`. */
export function readDocument(given: string | DocumentBlocks): Result<DocumentText> {
  const blocks: (readonly string[])[] = [];
  if (typeof given === 'string') {
    const wrong = check(given);
    if (!wrong.ok) return wrong;
    blocks.push(...splitText(given));
  } else {
    for (const block of given) {
      const segments = readBlock(block);
      if (!segments.ok) return segments;
      if (segments.value.length > 0) blocks.push(segments.value);
    }
  }
  if (blocks.some((segments) => segments.some(isMarkup))) return hasMarkup;
  const count = blocks.reduce((sum, { length }) => sum + length, 0);
  if (count === 0) return no(refuse('text_empty'));
  const limit = PROJECT_SEGMENTS_MAX;
  return count > limit ? no(refuse('text_too_long', { limit, unit: 'sentences in a document' })) : ok({ blocks });
}

function readBlock(block: DocumentBlocks[number]): Result<string[]> {
  if ('text' in block) {
    const wrong = check(block.text);
    return wrong.ok ? ok(splitBlock(block.text)) : wrong;
  }
  const segments: string[] = [];
  for (const given of block.segments) {
    const segment = readSegment(given);
    if (!segment.ok) return segment;
    segments.push(segment.value);
  }
  return ok(segments);
}

/** A segment as given: it is not cut, and is refused when too long. */
export function readSegment(given: string): Result<string> {
  const wrong = check(given);
  if (!wrong.ok) return wrong;
  const text = tidy(given);
  if (text === '') return no(refuse('text_empty'));
  if (isMarkup(text)) return hasMarkup;
  const limit = PROJECT_SEGMENT_CHARACTERS;
  return text.length > limit ? no(refuse('text_too_long', { limit, unit: 'characters in a segment' })) : ok(text);
}

/** SSML is one text, and a document is many: its tags would be read aloud. */
const hasMarkup = no(refuse('text_invalid', { rule: 'a sentence begins with markup, and projects take plain text' }));

/** Control characters, which show that a file is not text. */
const CONTROL = /(?![\t\n\r])\p{Cc}/u;

function check(text: string): Result<undefined> {
  if (!text.isWellFormed()) return no(refuse('text_invalid', { rule: 'half a character stands alone' }));
  if (CONTROL.test(text)) return no(refuse('text_invalid', { rule: 'it has control characters' }));
  return ok(undefined);
}

/** The file of a document. */
export function readDocumentFile(bytes: Uint8Array, contentType: string | undefined): Result<DocumentText> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return no(refuse('text_invalid', { rule: 'it is not UTF-8' }));
  }
  if ((contentType ?? DOCUMENT_TEXT).split(';')[0]?.trim().toLowerCase() !== DOCUMENT_JSON) return readDocument(text);
  try {
    const { data } = documentSheet.safeParse(JSON.parse(text));
    return data
      ? readDocument(data.blocks)
      : no(refuse('text_invalid', { rule: 'its JSON is not that of a document' }));
  } catch {
    return no(refuse('text_invalid', { rule: 'it is not JSON' }));
  }
}
