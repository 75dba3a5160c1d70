import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventId } from '../../../shared/audit/event-id.ts';
import {
  DOCUMENT_JSON,
  DOCUMENT_TEXT,
  encodeDocument,
  readDocument,
  readDocumentFile,
  readSegment,
} from '../../../shared/jobs/document.ts';
import { PROJECT_DOCUMENTS_MAX, PROJECT_SEGMENTS_MAX } from '../../../shared/jobs/limits.ts';
import { isUploadId } from '../../../shared/jobs/paths.ts';
import {
  documentId,
  indexOf,
  isDocumentId,
  isProjectId,
  projectIdOf,
  projectOf,
} from '../../../shared/jobs/project-id.ts';
import { PROJECT_SEGMENT_CHARACTERS } from '../../../shared/jobs/split-text.ts';
import { runs } from '../../seeds.ts';

const reasonOf = (result: { ok: boolean; refusal?: { reason: string } }) => (result.ok ? 'ok' : result.refusal?.reason);

describe('T3 the text of a document', () => {
  it('is read from its file as it was written', () => {
    const read = readDocument([{ text: 'One. Two.' }, { segments: ['Three.', 'Four.'] }]);
    expect(read).toEqual({
      ok: true,
      value: {
        blocks: [
          ['One.', 'Two.'],
          ['Three.', 'Four.'],
        ],
      },
    });
    if (!read.ok) return;
    expect(readDocumentFile(encodeDocument(read.value), DOCUMENT_JSON)).toEqual(read);
    const plain = new TextEncoder().encode('One. Two.\n\nThree. Four.');
    expect(readDocumentFile(plain, `${DOCUMENT_TEXT}; charset=utf-8`)).toEqual(read);
  });

  it.each([
    ['text_empty', ''],
    ['text_empty', ' \n\n '],
    ['text_empty', []],
    ['text_empty', [{ segments: [] }]],
    ['text_empty', [{ segments: [' '] }]],
    ['text_invalid', 'a\u0000b'],
    ['text_invalid', 'a\u001b[31mb'],
    ['text_invalid', '\ud83d alone'],
    ['text_invalid', '<speak>One. Two.</speak>'],
    ['text_invalid', [{ segments: ['fine', '<b>not</b>'] }]],
    ['text_invalid', [{ segments: ['fine', 'not\u0007fine'] }]],
    ['text_too_long', [{ segments: ['x'.repeat(100_000)] }]],
    ['text_too_long', 'One. '.repeat(PROJECT_SEGMENTS_MAX + 1)],
    ['ok', 'x'.repeat(100_000)],
    ['ok', 'tabs\tand\r\nline ends are text'],
  ])('%s', (reason, given) => expect(reasonOf(readDocument(given))).toBe(reason));

  it.each([
    ['text_invalid', new Uint8Array([0xff, 0xfe, 0x00]), DOCUMENT_TEXT],
    ['text_invalid', new TextEncoder().encode('{"v":1'), DOCUMENT_JSON],
    ['text_invalid', new TextEncoder().encode('{"v":2,"blocks":[]}'), DOCUMENT_JSON],
    ['text_invalid', new TextEncoder().encode('{"v":1,"blocks":[{"segments":[5]}]}'), DOCUMENT_JSON],
    ['text_empty', new Uint8Array(), DOCUMENT_TEXT],
  ])('a file that is none: %s', (reason, bytes, type) => expect(reasonOf(readDocumentFile(bytes, type))).toBe(reason));

  it('a segment is one line, and never too long', () => {
    expect(readSegment('  two\n lines ')).toEqual({ ok: true, value: 'two lines' });
    expect(reasonOf(readSegment('x'.repeat(PROJECT_SEGMENT_CHARACTERS + 1)))).toBe('text_too_long');
  });
});

describe('ids of projects and documents', () => {
  const random = fc.uint8Array({ minLength: 10, maxLength: 10 });

  it('name the owner and the document, and are no upload ids', () => {
    const index = fc.integer({ min: 0, max: PROJECT_DOCUMENTS_MAX - 1 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 45 }), random, index, (now, bytes, at) => {
        const unique = eventId(now, bytes);
        const project = projectIdOf(unique);
        const document = documentId(project, at);
        expect([isProjectId(project), isDocumentId(project), isUploadId(project)]).toEqual([true, false, false]);
        expect([isProjectId(document), isDocumentId(document), isUploadId(document)]).toEqual([false, true, false]);
        expect([projectOf(document), indexOf(document)]).toEqual([project, at]);
        expect([isProjectId(unique), isDocumentId(unique)]).toEqual([false, false]);
      }),
      { numRuns: runs(200, 5_000) },
    );
  });

  it('sort by the time they were made', () => {
    const zeros = new Uint8Array(10);
    expect(projectIdOf(eventId(5, zeros)) < projectIdOf(eventId(6, zeros))).toBe(true);
  });

  it.each(['', 'x', '019b76e2-9fa0-8000-8000-0000000000FF', '019b76e2-9fa0-8000-8000-0000000000ff\n'])(
    'forged %j',
    (id) => expect([isProjectId(id), isDocumentId(id)]).toEqual([false, false]),
  );

  it('a document beyond the last one is none', () => {
    const id = documentId('019b76e2-9fa0-8000-8000-0000000000ff', PROJECT_DOCUMENTS_MAX);
    expect(isDocumentId(id)).toBe(false);
  });
});
