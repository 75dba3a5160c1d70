import { PROJECT_DOCUMENT_BYTES, readDocumentFile, readSegment } from '../../../../../shared/jobs/document.ts';
import { type Refusal, refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { readWhole } from '../../storage/files.ts';
import { encodeLine } from '../task/lines.ts';
import { failed, readUpload, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { chooseSpeaker } from './choose-speaker.ts';
import { type DocumentPlan, fingerprint } from './sheets.ts';

/**
 * Segments that are written concurrently: a chapter of 1,000 takes seconds, and storage sees a small burst.
 */
const PROJECT_WRITES_MAX = 8;

/** Reasons that lie in the text or the options, and are the same on every agent. */
const senders: ReadonlySet<Refusal['reason']> = new Set<Refusal['reason']>([
  'text_empty',
  'text_invalid',
  'text_too_long',
  'language_unknown',
  'voice_unknown',
  'envelope_invalid',
  'upload_changed',
]);

const judge = (refusal: Refusal): Verdict =>
  senders.has(refusal.reason) ? { type: 'refused', refusal } : failed(refusal);

/** Reads the text of a document and writes each of its segments, so that a job reads only its own. */
export async function planDocument(task: Task): Promise<Verdict> {
  const speaker = chooseSpeaker(task);
  if (!speaker.ok) return judge(speaker.refusal);
  const upload = readUpload(task);
  if (!upload.ok) return failed(upload.refusal);
  const limit = PROJECT_DOCUMENT_BYTES;
  if (task.opened.upload.bytes > 2 * limit) return judge(refuse('text_too_long', { limit, unit: 'bytes' }));
  const bytes = await readWhole(upload.value, 2 * limit);
  if (!bytes.ok) return judge(bytes.refusal);
  if (bytes.value.length > limit) return judge(refuse('text_too_long', { limit, unit: 'bytes in a document' }));
  const read = readDocumentFile(bytes.value, task.opened.upload.contentType);
  if (!read.ok) return judge(read.refusal);
  const { blocks } = read.value;
  const segments = blocks.flat();
  const written = await writeSegments(task, segments);
  if (!written.ok) return failed(written.refusal);
  const plan: DocumentPlan = {
    v: 1,
    blocks: blocks.map(({ length }) => length),
    texts: segments.map((text) => fingerprint(spokenText(text))),
  };
  const planned = await writeOutcomeFile(task, 'plan', [encodeLine(plan)], {
    pieces: segments.length,
    blocks: plan.blocks,
    bytes: bytes.value.length,
  });
  return planned.ok ? { type: 'done' } : failed(planned.refusal);
}

/** Returns the text as the job of the segment reads it. */
function spokenText(text: string): string {
  const read = readSegment(text);
  return read.ok ? read.value : '';
}

async function writeSegments(task: Task, segments: readonly string[]): Promise<Result<undefined>> {
  const work = segments.entries();
  let refusal: Refusal | undefined;
  const walk = async () => {
    for (const [piece, text] of work) {
      if (refusal) return;
      const written = await writeOutcomeFile(task, `pieces/${piece}`, [new TextEncoder().encode(text)], {});
      if (!written.ok) refusal = written.refusal;
    }
  };
  await Promise.all(Array.from({ length: PROJECT_WRITES_MAX }, walk));
  return refusal ? no(refusal) : ok(undefined);
}
