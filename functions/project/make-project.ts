// A new project: its row and those of its documents, then their addresses. All rows are made in one transaction, so
// that there is no part of a project.
import { limits } from '../../shared/limits.ts';
import type { NewProject, ProjectGrant } from '../../shared/project/contract.ts';
import { documentId } from '../../shared/project/id.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { UPLOADS, uploadBlob } from '../../shared/upload/paths.ts';
import { newDocumentState, newProjectState } from '../../shared/upload/state.ts';
import { insertRecord } from '../upload/decide-step.ts';
import { countOpen } from '../upload/grant.ts';
import type { Office } from '../upload/office.ts';
import { newRecord, type UploadRecord } from '../upload/record.ts';
import { readUpload } from '../upload/step.ts';
import { touchTenant } from '../upload/tenants.ts';
import { refusalOfCallback, webhookSecret } from '../upload/webhook.ts';
import { projectRowOf } from './project-row.ts';

export async function makeProject(office: Office, asked: NewProject): Promise<Result<ProjectGrant>> {
  const { tenant, zone } = asked;
  const zoneKey = office.settings.ZONE_KEYS[zone]?.[0];
  if (!office.settings.ZONES.includes(zone)) return no(refuse('zone_unserved', { zone }));
  if (!zoneKey) return no(refuse('uploads_closed', undefined, `no key of the zone ${zone}`));
  const callback = refusalOfCallback(office, asked);
  if (callback) return no(callback);
  const limit = limits.uploadsOpen.value;
  const known = await countOpen(office, tenant);
  if (known.open >= limit) return no(refuse('uploads_waiting', { limit }));
  known.open += 1 + asked.project.documents.length;
  await touchTenant(office, tenant);
  const [project, documents] = recordsOf(asked, office.now());
  const changes = [project, ...documents].flatMap(insertRecord);
  // The edge may ask twice when the first answer was lost: the same question has the same answer.
  if (!(await office.rows.commit(tenant, changes)) && !(await isSame(office, project)))
    return no(refuse('project_exists'));
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
  const { id, callback, project, ...shared } = asked;
  const { documents, title: _, ...wishes } = project;
  const all = { ...shared, sealed: true, formats: ['json' as const], keepDays: 0 };
  const record = newRecord({ ...all, id, project, ...(callback !== undefined && { callback }) }, now, newProjectState);
  const made = documents.map(({ contentType }, document) => {
    const speech = { ...wishes, document };
    return newRecord({ ...all, id: documentId(id, document), contentType, speech }, now, newDocumentState);
  });
  return [record, made];
}

async function isSame(office: Office, { tenant, id, asked }: UploadRecord): Promise<boolean> {
  const record = await readUpload(office, { tenant, id });
  return record?.state.status === 'admitted' && JSON.stringify(record.asked) === JSON.stringify(asked);
}
