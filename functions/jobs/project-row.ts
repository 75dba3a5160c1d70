// The row of a project as the edge sees it: facts, states and numbers, no text.
import type { DocumentRow, ProjectRow } from '../../shared/jobs/project-contract.ts';
import { indexOf } from '../../shared/jobs/project-id.ts';
import { isOver } from '../../shared/jobs/state.ts';
import type { Refusal } from '../../shared/refusal.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { editionsOf } from './gather.ts';
import type { UploadRecord } from './record.ts';

export function projectRowOf(
  record: UploadRecord,
  documents: readonly UploadRecord[],
  zoneKey: ZoneKey | undefined,
): ProjectRow {
  const { tenant, id, request, state, created, ended, notice, noticeTries } = record;
  if (!request.project) throw new Error('a record of a project without its facts');
  const { titles } = { titles: request.project.documents.map(({ title }) => title) };
  return {
    id,
    tenant,
    status: statusOf(record, documents),
    run: state.run,
    // Each of them only rises.
    seq: documents.reduce((sum, one) => sum + one.state.seq, state.seq),
    zone: request.zone,
    class: request.class,
    model: request.model,
    ...(request.language !== undefined && { language: request.language }),
    ...(request.callback !== undefined && { callback: request.callback }),
    project: request.project,
    created,
    updated: Math.max(record.updated, ...documents.map(({ updated }) => updated)),
    ...(ended !== undefined && { ended }),
    ...(state.seconds !== undefined && { seconds: state.seconds }),
    ...plain(state.refusal),
    notice,
    noticeTries,
    documents: documents.map((one) => documentRowOf(one, titles[indexOf(one.id)])),
    ...(zoneKey && { zoneKey }),
  };
}

/**
 * Between the end of the last document and that of the project it is still working, so a waiting caller sees
 * one end.
 */
function statusOf({ state }: UploadRecord, documents: readonly UploadRecord[]): ProjectRow['status'] {
  if (state.status === 'cancelled') return 'cancelled';
  const all = documents.every((one) => isOver(one.state.status)) && state.edition === editionsOf(documents);
  return all && (state.status === 'done' || state.status === 'refused') ? state.status : 'working';
}

export function documentRowOf({ id, state, transcript }: UploadRecord, title: string | undefined): DocumentRow {
  const done = new Set(state.done);
  let first = 0;
  const blocks = (state.blocks ?? []).map((segments) => {
    const places = Array.from({ length: segments }, (_, at) => first + at);
    first += segments;
    return { segments, done: places.filter((place) => done.has(place)).length };
  });
  return {
    id,
    index: indexOf(id),
    ...(title !== undefined && { title }),
    status: state.status,
    edition: state.edition ?? 0,
    segments: state.pieces,
    segmentsDone: done.size,
    blocks,
    ...(state.seconds !== undefined && { seconds: state.seconds }),
    ...plain(state.refusal),
    audio: transcript,
  };
}

const plain = (refusal: Refusal | undefined) =>
  refusal && { refusal: { reason: refusal.reason, ...(refusal.params && { params: { ...refusal.params } }) } };
