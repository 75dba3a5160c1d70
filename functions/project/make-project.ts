// A new project: its row and those of its documents, then their addresses. All rows are made in one transaction, so
// that there is no part of a project.
import { limits } from '../../shared/limits.ts';
import type { NewProject, ProjectGrant } from '../../shared/project/contract.ts';
import { documentId } from '../../shared/project/id.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { UPLOADS, uploadBlob } from '../../shared/upload/paths.ts';
import { newDocumentState, newProjectState } from '../../shared/upload/state.ts';
import { dropOverdue } from '../caller/request-scope.ts';
import { insertRecord } from '../upload/decide-step.ts';
import { countOpen } from '../upload/grant.ts';
import type { Office } from '../upload/office.ts';
import { newRecord, type UploadRecord } from '../upload/record.ts';
import { readUpload } from '../upload/step.ts';
import { touchTenant } from '../upload/tenants.ts';
import { refusalOfCallback, webhookSecret } from '../upload/webhook.ts';
import { readDocuments } from './gather.ts';
import { projectRowOf } from './project-row.ts';

export async function makeProject(office: Office, asked: NewProject): Promise<Result<ProjectGrant>> {
  const { tenant, zone } = asked;
  const zoneKey = office.settings.ZONE_KEYS[zone]?.[0];
  if (!office.settings.ZONES.includes(zone)) return no(refuse('zone_unserved', { zone }));
  if (!zoneKey) return no(refuse('uploads_closed', undefined, `no key of the zone ${zone}`));
  const callback = refusalOfCallback(office, asked);
  if (callback) return no(callback);
  // As for an upload: a repeated call has the same answer, and storage that hangs is sent no write.
  const made = (await readMade(office, asked)) ?? (await insert(office, asked));
  if ('reason' in made) return no(made);
  const { project, documents } = made;
  if (!isSame(project, asked, office.now())) return no(refuse('project_exists'));
  return ok({
    project: projectRowOf(project, documents, zoneKey),
    documents: await Promise.all(
      documents.map(async (record) => ({
        id: record.id,
        url: await office.blobs.address(UPLOADS, uploadBlob(record), 'write', record.expires),
        headers: { 'x-ms-blob-type': 'BlockBlob' },
        expires: record.expires,
        maxBytes: limits.projectDocumentBytes.value,
      })),
    ),
    zoneKey,
    ...(asked.callback !== undefined && { webhookSecret: webhookSecret(office.settings, tenant) }),
  });
}

function recordsOf(asked: NewProject, now: number): [UploadRecord, UploadRecord[]] {
  const { id, callback, project, fingerprint, ...shared } = asked;
  const { documents, title: _, ...wishes } = project;
  const all = { ...shared, sealed: true, formats: ['json' as const], keepDays: 0 };
  const own = { ...(callback !== undefined && { callback }), ...(fingerprint !== undefined && { fingerprint }) };
  const record = newRecord({ ...all, id, project, ...own }, now, newProjectState);
  const made = documents.map(({ contentType }, document) => {
    const speech = { ...wishes, document };
    return newRecord({ ...all, id: documentId(id, document), contentType, speech }, now, newDocumentState);
  });
  return [record, made];
}

interface Made {
  readonly project: UploadRecord;
  readonly documents: readonly UploadRecord[];
}

async function readMade(office: Office, { tenant, id }: NewProject): Promise<Made | undefined> {
  const project = await readUpload(office, { tenant, id });
  return project && { project, documents: await readDocuments(office, project) };
}

/** Inserts all rows, or finds those that another call with this id has inserted meanwhile. */
async function insert(office: Office, asked: NewProject): Promise<Made | Refusal> {
  const limit = limits.uploadsOpen.value;
  const known = await countOpen(office, asked.tenant);
  if (known.open >= limit) return refuse('uploads_waiting', { limit });
  known.open += 1 + asked.project.documents.length;
  await touchTenant(office, asked.tenant);
  // The tenant's row is no trace of this request.
  dropOverdue();
  const [project, documents] = recordsOf(asked, office.now());
  if (await office.rows.commit(asked.tenant, [project, ...documents].flatMap(insertRecord)))
    return { project, documents };
  return (await readMade(office, asked)) ?? refuse('project_exists');
}

function isSame({ asked: before, state }: UploadRecord, asked: NewProject, now: number): boolean {
  if (before.fingerprint !== undefined) return before.fingerprint === asked.fingerprint;
  const [same] = recordsOf(asked, now);
  return state.status === 'admitted' && JSON.stringify(before) === JSON.stringify(same.asked);
}
