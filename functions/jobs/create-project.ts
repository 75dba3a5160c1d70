// Creates a project: inserts its row and those of its documents in one transaction, then makes their addresses.

import { PROJECT_DOCUMENT_BYTES } from '../../shared/jobs/document.ts';
import { UPLOADS, uploadBlob } from '../../shared/jobs/paths.ts';
import type { NewProject, ProjectGrant } from '../../shared/jobs/project-contract.ts';
import { documentId } from '../../shared/jobs/project-id.ts';
import { newDocumentState, newProjectState } from '../../shared/jobs/state.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { dropOverdue } from '../caller/request-scope.ts';
import type { JobContext } from './context.ts';
import { insertRecord } from './decide-step.ts';
import { readDocuments } from './gather.ts';
import { countOpen, UPLOADS_OPEN_MAX, zoneKeyFor } from './grant-upload.ts';
import { projectRowOf } from './project-row.ts';
import { newRecord, type UploadRecord } from './record.ts';
import { readUpload } from './step.ts';
import { touchTenant } from './tenants.ts';
import { webhookSecret } from './webhook.ts';

export async function createProject(context: JobContext, request: NewProject): Promise<Result<ProjectGrant>> {
  const zoneKey = zoneKeyFor(context, request);
  if (!zoneKey.ok) return zoneKey;
  // Reads first, as `grantUpload` does.
  const made = (await readMade(context, request)) ?? (await insert(context, request));
  if ('reason' in made) return no(made);
  const { project, documents } = made;
  if (!isSame(project, request, context.now())) return no(refuse('project_exists'));
  return ok({
    project: projectRowOf(project, documents, zoneKey.value),
    documents: await Promise.all(
      documents.map(async (record) => ({
        id: record.id,
        url: await context.blobs.address(UPLOADS, uploadBlob(record), 'write', record.expires),
        headers: { 'x-ms-blob-type': 'BlockBlob' },
        expires: record.expires,
        maxBytes: PROJECT_DOCUMENT_BYTES,
      })),
    ),
    zoneKey: zoneKey.value,
    ...(request.callback !== undefined && { webhookSecret: webhookSecret(context.settings, request.tenant) }),
  });
}

function recordsOf(request: NewProject, now: number): [UploadRecord, UploadRecord[]] {
  const { id, callback, project, fingerprint, ...shared } = request;
  const { documents, title: _, ...settings } = project;
  const all = { ...shared, sealed: true, formats: ['json' as const], keepDays: 0 };
  const own = { ...(callback !== undefined && { callback }), ...(fingerprint !== undefined && { fingerprint }) };
  const record = newRecord({ ...all, id, project, ...own }, now, newProjectState);
  const made = documents.map(({ contentType }, document) => {
    const speech = { ...settings, document };
    return newRecord({ ...all, id: documentId(id, document), contentType, speech }, now, newDocumentState);
  });
  return [record, made];
}

interface Made {
  readonly project: UploadRecord;
  readonly documents: readonly UploadRecord[];
}

async function readMade(context: JobContext, { tenant, id }: NewProject): Promise<Made | undefined> {
  const project = await readUpload(context, { tenant, id });
  return project && { project, documents: await readDocuments(context, project) };
}

/** Inserts all rows, or finds those that another call with this id has inserted meanwhile. */
async function insert(context: JobContext, request: NewProject): Promise<Made | Refusal> {
  const limit = UPLOADS_OPEN_MAX;
  const known = await countOpen(context, request.tenant);
  if (known.open >= limit) return refuse('uploads_waiting', { limit });
  known.open += 1 + request.project.documents.length;
  await touchTenant(context, request.tenant);
  // The tenant's row does not count as a write of this request.
  dropOverdue();
  const [project, documents] = recordsOf(request, context.now());
  if (await context.rows.commit(request.tenant, [project, ...documents].flatMap(insertRecord)))
    return { project, documents };
  return (await readMade(context, request)) ?? refuse('project_exists');
}

function isSame({ request: before, state }: UploadRecord, request: NewProject, now: number): boolean {
  if (before.fingerprint !== undefined) return before.fingerprint === request.fingerprint;
  const [same] = recordsOf(request, now);
  return state.status === 'admitted' && JSON.stringify(before) === JSON.stringify(same.request);
}
