// Reads, deletes, reruns and opens projects.

import { inEdition, type UploadPlace } from '../../shared/jobs/paths.ts';
import type { DocumentRow, OpenedDocument, ProjectList, ProjectRow } from '../../shared/jobs/project-contract.ts';
import { documentId } from '../../shared/jobs/project-id.ts';
import { isOver } from '../../shared/jobs/state.ts';
import type { Waiting } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { JobContext } from './context.ts';
import { readDocuments } from './gather.ts';
import { documentRowOf, projectRowOf } from './project-row.ts';
import type { UploadRecord } from './record.ts';
import { release } from './release.ts';
import { settle } from './settle.ts';
import { readUpload, step } from './step.ts';
import { BLOB_MISSING, openResult, rerunUpload } from './uploads.ts';
import { type PageQuery, readPage } from './visibility.ts';
import { longestOf, readWaiting } from './waiting.ts';

const unknown = () => no(refuse('project_unknown'));

export async function getProject(context: JobContext, place: UploadPlace): Promise<Result<ProjectRow>> {
  const record = await readUpload(context, place);
  return record ? ok(await rowOf(context, record)) : unknown();
}

/** Returns the row with what its documents wait for. */
export async function inspectProject(context: JobContext, place: UploadPlace): Promise<Result<ProjectRow>> {
  const record = await readUpload(context, place);
  if (!record) return unknown();
  const open = (await readDocuments(context, record)).filter(({ state }) => !isOver(state.status));
  const waits = new Map<string, Waiting | undefined>();
  await Promise.all(open.map(async (one) => void waits.set(one.id, await readWaiting(context, one))));
  const row = await rowOf(context, record);
  const all = [...waits.values()].filter((one) => one !== undefined);
  const waiting = all.length === waits.size ? longestOf(all) : undefined;
  return ok({
    ...row,
    documents: row.documents.map((one) => withWait(one, waits.get(one.id))),
    ...(waiting && { waiting }),
  });
}

const withWait = (row: DocumentRow, waiting: Waiting | undefined) => ({ ...row, ...(waiting && { waiting }) });

async function rowOf(context: JobContext, record: UploadRecord): Promise<ProjectRow> {
  return projectRowOf(
    record,
    await readDocuments(context, record),
    context.settings.ZONE_KEYS[record.request.zone]?.[0],
  );
}

/** Lists projects with their documents, newest first. */
export async function listProjects(context: JobContext, query: PageQuery): Promise<ProjectList> {
  const { records, next } = await readPage(context, 'p!', query);
  const projects = await Promise.all(records.map((record) => rowOf(context, record)));
  return { projects, ...(next !== undefined && { next }) };
}

/** Cancels a project and deletes its files. */
export async function deleteProject(context: JobContext, place: UploadPlace): Promise<Result<ProjectRow>> {
  const stepped = await step(context, place, () => [{ type: 'cancelled' }]);
  if (!stepped) return unknown();
  // Also after an earlier deletion, which may have left files.
  await settle(context, place);
  await release(context, place.tenant, stepped.record.request);
  return getProject(context, place);
}

/** Reruns refused documents; their finished segments stay. */
export async function rerunProject(context: JobContext, place: UploadPlace): Promise<Result<ProjectRow>> {
  const project = await readUpload(context, place);
  if (!project) return unknown();
  const wrong = (status: string) => no(refuse('project_status_wrong', { status }));
  if (project.state.status === 'cancelled') return wrong('cancelled');
  const refused = (await readDocuments(context, place)).filter(({ state }) => state.status === 'refused');
  if (refused.length === 0) return wrong((await rowOf(context, project)).status);
  for (const { tenant, id } of refused) {
    const again = await rerunUpload(context, { tenant, id });
    // Another caller has rerun it.
    if (!again.ok && again.refusal.reason !== 'upload_status_wrong') return again;
  }
  return getProject(context, place);
}

/** Opens the speech of a document for an agent that can decrypt it. */
export async function openDocument(
  context: JobContext,
  place: UploadPlace,
  index: number,
): Promise<Result<OpenedDocument>> {
  const project = await readUpload(context, place);
  if (!project) return unknown();
  const document = { tenant: place.tenant, id: documentId(place.id, index) };
  const record = await readUpload(context, document);
  if (!record) return no(refuse('document_unknown'));
  const { state, request, transcript } = record;
  if (transcript === 'deleted' || project.state.status === 'cancelled') return no(refuse('speech_gone'));
  if (state.status !== 'done') return no(refuse('project_status_wrong', { status: state.status }));
  const opened = await openResult(context, record);
  if (!opened) return no(refuse('speech_gone', undefined, BLOB_MISSING));
  return ok({
    document: documentRowOf(record, project.request.project?.documents[index]?.title),
    model: request.model,
    ...(request.language !== undefined && { language: request.language }),
    run: state.run,
    name: inEdition('transcript', state.edition ?? 0),
    ...opened,
  });
}
