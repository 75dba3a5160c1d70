// Another text for one segment. Its file is written first, under a name that the change alone has, then the row says
// that it counts: a crash between the two leaves a file that the next change of the segment lets count, or takes away.

import { inEdition, OUTCOMES, outcomeBlob, type UploadPlace } from '../../shared/jobs/paths.ts';
import type { NewSegment, ProjectRow } from '../../shared/jobs/project-contract.ts';
import { PROJECT_EDIT_BYTES } from '../../shared/jobs/project-contract.ts';
import { documentId } from '../../shared/jobs/project-id.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, type Result } from '../../shared/result.ts';
import { readHead, UPLOAD_HEAD_BYTES } from '../../shared/seal/envelope.ts';
import type { JobContext } from './context.ts';
import { getProject } from './projects.ts';
import type { UploadRecord } from './record.ts';
import { release } from './release.ts';
import { readUpload, step } from './step.ts';

export interface SegmentPlace {
  readonly document: number;
  readonly segment: number;
}

export async function editSegment(
  context: JobContext,
  place: UploadPlace,
  { document, segment }: SegmentPlace,
  { edition, file }: NewSegment,
): Promise<Result<ProjectRow>> {
  const project = await readUpload(context, place);
  if (!project) return no(refuse('project_unknown'));
  if (project.state.status === 'cancelled') return no(refuse('project_status_wrong', { status: 'cancelled' }));
  const at = { tenant: place.tenant, id: documentId(place.id, document) };
  const record = await readUpload(context, at);
  if (!record) return no(refuse('document_unknown'));
  const bytes = new Uint8Array(Buffer.from(file, 'base64'));
  const name = inEdition(`pieces/${segment}` as const, edition);
  const refusal =
    checkState(record, segment, edition) ?? checkFile(context, record, bytes, `${record.state.run}/${name}`);
  if (refusal) return no(refusal);

  const blob = outcomeBlob({ ...at, run: record.state.run, name });
  const ours = (await context.blobs.create(OUTCOMES, blob, bytes)) === 'created' || (await holds(context, blob, bytes));
  const stepped = await step(context, at, (now) =>
    now.transcript === 'deleted' ? [] : [{ type: 'edited', piece: segment, edition }],
  );
  const state = stepped?.record.state;
  // A retry of an edit whose answer was lost finds it applied.
  const counts = state?.edits?.[segment] === edition && ours;
  if (!counts) return no(refuse('edition_passed', { edition: (state?.edition ?? 0) + 1 }));
  await release(context, at.tenant, record.request);
  return getProject(context, place);
}

function checkState({ state, transcript }: UploadRecord, segment: number, edition: number): Refusal | undefined {
  const { status, pieces, edition: now = 0 } = state;
  const closed = status === 'cancelled' || status === 'expired' || transcript === 'deleted';
  if (closed || pieces === 0) return refuse('project_status_wrong', { status: closed ? 'deleted' : status });
  if (segment >= pieces) return refuse('segment_unknown');
  const again = edition === now && state.edits?.[segment] === edition;
  return again || edition === now + 1 ? undefined : refuse('edition_passed', { edition: now + 1 });
}

/** Checks what is visible without a key. The agent finds faults inside the sealed file. */
function checkFile(context: JobContext, record: UploadRecord, bytes: Uint8Array, name: string): Refusal | undefined {
  const invalid = (rule: string, detail?: string) => refuse('envelope_invalid', { rule }, detail);
  const limit = PROJECT_EDIT_BYTES;
  if (bytes.length > limit) return refuse('text_too_long', { limit, unit: 'bytes in a sealed segment' });
  const read = readHead(bytes.subarray(0, UPLOAD_HEAD_BYTES));
  if (!read.ok) return invalid('its head cannot be read', read.refusal.detail);
  const { head } = read.value;
  if (head.tenant !== record.tenant || head.upload !== record.id) return invalid('its head names another document');
  if (head.name !== name) return invalid('its head names another segment or edition');
  const keys = context.settings.ZONE_KEYS[record.request.zone] ?? [];
  return keys.some(({ kid }) => kid === head.key) ? undefined : invalid('it is not sealed to the key of its zone');
}

/** Reports whether the blob has these bytes and not those of a concurrent edit. */
async function holds(context: JobContext, blob: string, bytes: Uint8Array): Promise<boolean> {
  const found = await context.blobs.find(OUTCOMES, blob);
  if (found?.bytes !== bytes.length) return false;
  const there = await context.blobs.start(OUTCOMES, found, bytes.length);
  return there !== undefined && Buffer.compare(there, bytes) === 0;
}
