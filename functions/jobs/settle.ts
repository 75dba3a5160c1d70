// Settles a finished upload: deletes what is not retained, sends its notice, and forgets it in time. Each
// part is repeatable; an unfinished part stays due.

import {
  OUTCOMES,
  outcomeBlob,
  outcomePrefix,
  readOutcomeBlob,
  UPLOADS,
  type UploadPlace,
  uploadBlob,
} from '../../shared/jobs/paths.ts';
import { isDocumentId, projectOf } from '../../shared/jobs/project-id.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { TRANSACTION_ROWS_MAX } from '../limits.ts';
import { type Change, endOf } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { erasedOf } from './erased.ts';
import { dropDocuments, gather } from './gather.ts';
import { audioUntil, deliveriesPrefix, dueKey, dueOf, forgetAt, recordKey, type UploadRecord } from './record.ts';
import { reportEnd, reportErased } from './report-work.ts';
import { isRetained } from './retained.ts';
import { amend, readUpload } from './step.ts';
import { bookUsage } from './usage.ts';

/**
 * Age at which a queued notice without outcome is queued again: longer than one attempt with its deadline.
 */
const WEBHOOK_REQUEUE_MS = 120_000;

export async function settle(context: JobContext, place: UploadPlace): Promise<void> {
  const read = await readUpload(context, place);
  if (!read || !isOver(read.state.status)) return;
  const now = context.now();
  const changed = await reportEnd(context, read);
  if (changed) await amend(context, place, changed);
  if (now >= forgetAt(read)) return forget(context, place, now);
  await sweep(context, read);
  const { run, edition } = read.state;
  await bookUsage(context, { tenant: read.tenant, upload: read.id, run, ...(edition && { edition }) });
  const record = await closeAudio(context, read, now);
  if (!record) return;
  // Also when there was none: an address that is still good may have been used again.
  if (record.audio !== 'held') await context.blobs.remove(UPLOADS, uploadBlob(place));
  await settleProject(context, record);
  const notify = record.notice === 'pending' && (record.noticeDue ?? 0) <= now;
  if (notify) await context.notices.send({ ...place, run: record.state.run, tries: record.noticeTries });
  await amend(context, place, (seen) => {
    if (!isSameEnd(seen, record)) return undefined;
    const after: UploadRecord = {
      ...seen,
      ...(notify && seen.noticeDue === record.noticeDue && { noticeDue: now + WEBHOOK_REQUEUE_MS }),
    };
    const due = dueOf(after, now);
    return due === seen.due ? undefined : { ...after, due };
  });
}

/** Run again meanwhile: then nothing that was read is true any more. */
const isSameEnd = (seen: UploadRecord, read: UploadRecord): boolean =>
  seen.state.run === read.state.run && isOver(seen.state.status);

/**
 * Marks the audio as deleted before deleting it, so that no run begins; the row stays due until the blob has
 * gone. @returns the record; `undefined` when a run has begun.
 */
async function closeAudio(context: JobContext, read: UploadRecord, now: number): Promise<UploadRecord | undefined> {
  const goes = (record: UploadRecord) => now >= (audioUntil(record) ?? Number.POSITIVE_INFINITY);
  if (!goes(read)) return read;
  const kept = (audioUntil(read) ?? 0) > (read.ended ?? 0);
  await reportErased(context, read, 'audio', kept ? 'expired' : 'ended');
  const seen = await amend(context, read, (record) =>
    isSameEnd(record, read) && goes(record) ? { ...record, audio: 'deleted' } : undefined,
  );
  return seen && isSameEnd(seen, read) ? seen : undefined;
}

/** A document that is over may be the last of its project; a project that was deleted takes its documents along. */
async function settleProject(context: JobContext, { tenant, id, state }: UploadRecord): Promise<void> {
  const project = { tenant, id: projectOf(id) };
  if (isDocumentId(id) && (await gather(context, project))) await settle(context, project);
  if (state.of !== 'project' || state.status !== 'cancelled') return;
  for (const place of await dropDocuments(context, project)) await settle(context, place);
}

/** Deletes what agents wrote on the way, and all of it when there is no transcript to keep. */
async function sweep(context: JobContext, record: UploadRecord): Promise<void> {
  const { tenant, id, state, transcript } = record;
  const place = { tenant, id };
  const kept = transcript === 'held' ? outcomeBlob({ ...place, run: state.run, name: 'transcript' }) : undefined;
  for (const { name } of await context.blobs.list(OUTCOMES, outcomePrefix(place))) {
    // Files of a later run, which has begun since the read, stay for that run's own end.
    const later = (readOutcomeBlob(name)?.run ?? 0) > state.run;
    const stays = state.of === 'document' ? isRetained(record, name) : name === kept;
    if (!later && !stays) await context.blobs.remove(OUTCOMES, name);
  }
}

/**
 * Forgets an upload. The row is marked first, so that no run begins, and goes last, since it names what to
 * delete.
 */
async function forget(context: JobContext, place: UploadPlace, now: number): Promise<void> {
  const { tenant, id } = place;
  const read = await readUpload(context, place);
  if (read && erasedOf(read, now)) await reportErased(context, read, 'all', 'expired');
  const isDue = (seen: UploadRecord) => isOver(seen.state.status) && now >= forgetAt(seen);
  const record = await amend(context, place, (seen) => (isDue(seen) ? erasedOf(seen, now) : undefined));
  if (!record || !isDue(record)) return;
  await sweep(context, { ...record, transcript: 'deleted' });
  await context.blobs.remove(UPLOADS, uploadBlob(place));
  const prefix = deliveriesPrefix(id);
  const own: Change[] = [
    { type: 'remove', key: recordKey(id) },
    { type: 'remove', key: dueKey(record) },
  ];
  for (;;) {
    const rows = await context.rows.scan(tenant, prefix, endOf(prefix), TRANSACTION_ROWS_MAX);
    const deliveries: Change[] = rows.map(({ key }) => ({ type: 'remove', key }));
    const last = deliveries.length + own.length <= TRANSACTION_ROWS_MAX;
    // Others were faster: they go on, or the timer does.
    if (!(await context.rows.commit(tenant, last ? [...deliveries, ...own] : deliveries)) || last) return;
  }
}

/** Erases a finished upload at its owner's request. */
export async function erase(context: JobContext, place: UploadPlace): Promise<UploadRecord | undefined> {
  const read = await readUpload(context, place);
  if (read && erasedOf(read, context.now())) await reportErased(context, read, 'all', 'owner');
  const record = await amend(context, place, (seen) => {
    return erasedOf(seen, context.now());
  });
  if (record) await settle(context, place);
  return record;
}
