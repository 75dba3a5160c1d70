// What the edge asks of projects that exist: to see them, to stop them, to do again what failed, to hear what came out.
import { limits } from '../../shared/limits.ts';
import type { DocumentRow, OpenedDocument, ProjectList, ProjectRow } from '../../shared/project/contract.ts';
import { documentId } from '../../shared/project/id.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Waiting } from '../../shared/upload/contract.ts';
import { inEdition, OUTCOMES, outcomeBlob, type UploadPlace } from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import { rerun } from '../upload/asked.ts';
import type { Office } from '../upload/office.ts';
import { type PageQuery, readPage } from '../upload/own.ts';
import type { UploadRecord } from '../upload/record.ts';
import { release } from '../upload/release.ts';
import { settle } from '../upload/settle.ts';
import { readUpload, step } from '../upload/step.ts';
import { longestOf, readWaiting } from '../upload/waiting.ts';
import { readDocuments } from './gather.ts';
import { documentRowOf, projectRowOf } from './project-row.ts';

const unknown = () => no(refuse('project_unknown'));

export async function seeProject(office: Office, place: UploadPlace): Promise<Result<ProjectRow>> {
  const record = await readUpload(office, place);
  return record ? ok(await rowOf(office, record)) : unknown();
}

/** Returns the row with what its documents wait for. */
export async function showProject(office: Office, place: UploadPlace): Promise<Result<ProjectRow>> {
  const record = await readUpload(office, place);
  if (!record) return unknown();
  const open = (await readDocuments(office, record)).filter(({ state }) => !isOver(state.status));
  const waits = new Map<string, Waiting | undefined>();
  await Promise.all(open.map(async (one) => void waits.set(one.id, await readWaiting(office, one))));
  const row = await rowOf(office, record);
  const all = [...waits.values()].filter((one) => one !== undefined);
  const waiting = all.length === waits.size ? longestOf(all) : undefined;
  return ok({
    ...row,
    documents: row.documents.map((one) => withWait(one, waits.get(one.id))),
    ...(waiting && { waiting }),
  });
}

const withWait = (row: DocumentRow, waiting: Waiting | undefined) => ({ ...row, ...(waiting && { waiting }) });

async function rowOf(office: Office, record: UploadRecord): Promise<ProjectRow> {
  return projectRowOf(record, await readDocuments(office, record), office.settings.ZONE_KEYS[record.asked.zone]?.[0]);
}

/** Lists projects with their documents, newest first. */
export async function listProjects(office: Office, query: PageQuery): Promise<ProjectList> {
  const { records, next } = await readPage(office, 'p!', query);
  const projects = await Promise.all(records.map((record) => rowOf(office, record)));
  return { projects, ...(next !== undefined && { next }) };
}

/** Stops it, and deletes what is there of it. */
export async function deleteProject(office: Office, place: UploadPlace): Promise<Result<ProjectRow>> {
  const stepped = await step(office, place, () => [{ type: 'cancelled' }]);
  if (!stepped) return unknown();
  // Also of one that was deleted before: whoever asks again may do so because something was left.
  await settle(office, place);
  await release(office, place.tenant, stepped.record.asked);
  return seeProject(office, place);
}

/** Documents that were refused once more; what of them is done stays done. */
export async function rerunProject(office: Office, place: UploadPlace): Promise<Result<ProjectRow>> {
  const project = await readUpload(office, place);
  if (!project) return unknown();
  const wrong = (status: string) => no(refuse('project_status_wrong', { status }));
  if (project.state.status === 'cancelled') return wrong('cancelled');
  const refused = (await readDocuments(office, place)).filter(({ state }) => state.status === 'refused');
  if (refused.length === 0) return wrong((await rowOf(office, project)).status);
  for (const { tenant, id } of refused) {
    const again = await rerun(office, { tenant, id });
    // Somebody else was faster, which is as good.
    if (!again.ok && again.refusal.reason !== 'upload_status_wrong') return again;
  }
  return seeProject(office, place);
}

/** Where the sound of a document can be read, by an agent that can open it. */
export async function openDocument(office: Office, place: UploadPlace, index: number): Promise<Result<OpenedDocument>> {
  const project = await readUpload(office, place);
  if (!project) return unknown();
  const document = { tenant: place.tenant, id: documentId(place.id, index) };
  const record = await readUpload(office, document);
  if (!record) return no(refuse('document_unknown'));
  const { state, asked, transcript } = record;
  if (transcript === 'deleted' || project.state.status === 'cancelled') return no(refuse('speech_gone'));
  if (state.status !== 'done') return no(refuse('project_status_wrong', { status: state.status }));
  const name = inEdition('transcript', state.edition ?? 0);
  const blob = outcomeBlob({ ...document, run: state.run, name });
  const found = await office.blobs.find(OUTCOMES, blob);
  if (!found) return no(refuse('speech_gone', undefined, 'the row says it is there'));
  const expires = office.now() + limits.jobUrlSeconds.value * 1_000;
  return ok({
    document: documentRowOf(record, project.asked.project?.documents[index]?.title),
    model: asked.model,
    ...(asked.language !== undefined && { language: asked.language }),
    run: state.run,
    name,
    read: { url: await office.blobs.address(OUTCOMES, blob, 'read', expires), etag: found.etag },
    zone: asked.zone,
    zoneKeyId: office.settings.ZONE_KEYS[asked.zone]?.[0]?.kid ?? '',
    expires,
  });
}
