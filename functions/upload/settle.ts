// An upload is over: delete what is not kept, tell who asked to be told, and once its time has come, forget it. Each part
// may be done twice; what is not done stays due.

import { isDocumentId, projectOf } from '../../shared/project/id.ts';
import {
  OUTCOMES,
  outcomeBlob,
  outcomePrefix,
  UPLOADS,
  type UploadPlace,
  uploadBlob,
} from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import { dropDocuments, gather } from '../project/gather.ts';
import { isKept } from '../project/kept.ts';
import { CHANGES_MAX, type Change, endOf } from '../store/rows.ts';
import { erasedOf } from './erased.ts';
import type { Office } from './office.ts';
import {
  audioUntil,
  deliveriesPrefix,
  dueKey,
  dueOf,
  forgetAt,
  MINUTE,
  recordKey,
  type UploadRecord,
} from './record.ts';
import { amend, readUpload } from './step.ts';
import { bookUsage } from './usage.ts';

/** A notice that was queued and of which nothing was heard for so long is queued again. */
const NOTICE_AGAIN_MS = 2 * MINUTE;

export async function settle(office: Office, place: UploadPlace): Promise<void> {
  const record = await readUpload(office, place);
  if (!record || !isOver(record.state.status)) return;
  const now = office.now();
  if (now >= forgetAt(record)) return forget(office, record);
  await sweep(office, record);
  await bookUsage(office, { tenant: record.tenant, upload: record.id, run: record.state.run });
  const until = audioUntil(record);
  const away = record.audio !== 'held' || (until !== undefined && now >= until);
  // Also when there was none: an address that is still good may have been used again.
  if (away) await office.blobs.remove(UPLOADS, uploadBlob(place));
  await settleProject(office, record);
  const tell = record.notice === 'pending' && (record.noticeDue ?? 0) <= now;
  if (tell) await office.notices.send({ ...place, run: record.state.run, tries: record.noticeTries });
  await amend(office, place, (seen) => {
    // Run again meanwhile: then nothing of this is true any more.
    if (seen.state.run !== record.state.run || !isOver(seen.state.status)) return undefined;
    const after: UploadRecord = {
      ...seen,
      ...(away && seen.audio === 'held' && { audio: 'deleted' }),
      ...(tell && seen.noticeDue === record.noticeDue && { noticeDue: now + NOTICE_AGAIN_MS }),
    };
    const due = dueOf(after, now);
    return due === seen.due && after.audio === seen.audio ? undefined : { ...after, due };
  });
}

/** A document that is over may be the last of its project; a project that was deleted takes its documents along. */
async function settleProject(office: Office, { tenant, id, state }: UploadRecord): Promise<void> {
  const project = { tenant, id: projectOf(id) };
  if (isDocumentId(id) && (await gather(office, project))) await settle(office, project);
  if (state.of !== 'project' || state.status !== 'cancelled') return;
  for (const place of await dropDocuments(office, project)) await settle(office, place);
}

/** Deletes what agents wrote on the way, and all of it when there is no transcript to keep. */
async function sweep(office: Office, record: UploadRecord): Promise<void> {
  const { tenant, id, state, transcript } = record;
  const place = { tenant, id };
  const kept = transcript === 'held' ? outcomeBlob({ ...place, run: state.run, name: 'transcript' }) : undefined;
  for (const { name } of await office.blobs.list(OUTCOMES, outcomePrefix(place))) {
    const stays = state.of === 'document' ? isKept(record, name) : name === kept;
    if (!stays) await office.blobs.remove(OUTCOMES, name);
  }
}

/** Nothing of it stays. The row goes last: without it nobody would know what to delete. */
async function forget(office: Office, record: UploadRecord): Promise<void> {
  const { tenant, id } = record;
  await sweep(office, { ...record, transcript: 'deleted' });
  await office.blobs.remove(UPLOADS, uploadBlob({ tenant, id }));
  const prefix = deliveriesPrefix(id);
  const deliveries = await office.rows.scan(tenant, prefix, endOf(prefix), CHANGES_MAX - 2);
  const changes: Change[] = deliveries.map(({ key }) => ({ type: 'remove', key }));
  await office.rows.commit(tenant, [
    { type: 'remove', key: recordKey(id) },
    { type: 'remove', key: dueKey(record) },
    ...changes,
  ]);
}

/** Its owner wants nothing of it left, now. Only of an upload that is over. */
export async function erase(office: Office, place: UploadPlace): Promise<UploadRecord | undefined> {
  const record = await amend(office, place, (seen) => {
    return erasedOf(seen, office.now());
  });
  if (record) await settle(office, place);
  return record;
}
