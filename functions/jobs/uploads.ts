// Reads, cancels, reruns and opens uploads.

import { inEdition, OUTCOMES, outcomeBlob, UPLOADS, type UploadPlace, uploadBlob } from '../../shared/jobs/paths.ts';
import { isOver } from '../../shared/jobs/state.ts';
import type { OpenedTranscript, UploadList, UploadRow } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { JobContext } from './context.ts';
import { JOB_URL_S, rowOf, type UploadRecord } from './record.ts';
import { release } from './release.ts';
import { erase, settle } from './settle.ts';
import { readUpload, step } from './step.ts';
import { type PageQuery, readPage } from './visibility.ts';
import { readWaiting } from './waiting.ts';

const unknown = () => no(refuse('upload_unknown'));

export async function getUpload(context: JobContext, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(context, place);
  return record ? ok(rowOf(record)) : unknown();
}

/** Returns the row with what the upload waits for. */
export async function inspectUpload(context: JobContext, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(context, place);
  if (!record) return unknown();
  const waiting = await readWaiting(context, record);
  return ok({ ...rowOf(record), ...(waiting && { waiting }) });
}

/** Lists uploads, newest first. */
export async function listUploads(context: JobContext, query: PageQuery): Promise<UploadList> {
  const { records, next } = await readPage(context, 'u!', query);
  return { uploads: records.map(rowOf), ...(next !== undefined && { next }) };
}

/** Cancels an upload; deletes the files of one that has ended. */
export async function cancelUpload(context: JobContext, place: UploadPlace): Promise<Result<UploadRow>> {
  const stepped = await step(context, place, () => [{ type: 'cancelled' }]);
  if (!stepped) return unknown();
  if (stepped.moved) {
    await settle(context, place);
    await release(context, place.tenant, stepped.record.request);
  } else {
    await erase(context, place);
  }
  return getUpload(context, place);
}

/** Runs an upload again from its audio, if that is still there. */
export async function rerunUpload(context: JobContext, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(context, place);
  if (!record) return unknown();
  const { status, etag } = record.state;
  if (!isOver(status) || status === 'expired') return no(refuse('upload_status_wrong', { status }));
  // The segments of a planned document hold all that a run needs.
  const planned = record.state.of === 'document' && record.state.pieces > 0;
  const found = record.audio === 'held' ? await context.blobs.find(UPLOADS, uploadBlob(place)) : undefined;
  if (!planned && (!found || found.etag !== etag)) return no(refuse('upload_audio_gone'));
  const stepped = await step(context, place, (now) =>
    (planned ? now.transcript !== 'deleted' : now.audio === 'held') && now.state.run === record.state.run
      ? [{ type: 'rerun' }]
      : [],
  );
  // A retried write whose answer was lost finds its own change.
  const begun = stepped?.record.state.run === record.state.run + 1;
  if (stepped && !stepped.moved && !planned && isOver(stepped.record.state.status) && stepped.record.audio !== 'held')
    return no(refuse('upload_audio_gone'));
  if (!stepped || !(stepped.moved || begun))
    return no(refuse('upload_status_wrong', { status: stepped?.record.state.status ?? status }));
  await release(context, place.tenant, record.request);
  return ok(rowOf(stepped.record));
}

/** Opens the transcript for an agent that can decrypt it. */
export async function openTranscript(context: JobContext, place: UploadPlace): Promise<Result<OpenedTranscript>> {
  const record = await readUpload(context, place);
  if (!record) return unknown();
  const { status } = record.state;
  if (status !== 'done') return no(refuse('upload_status_wrong', { status }));
  if (record.transcript !== 'held') return no(refuse('transcript_gone'));
  const opened = await openResult(context, record);
  return opened ? ok({ upload: rowOf(record), ...opened }) : no(refuse('transcript_gone', undefined, BLOB_MISSING));
}

/** Detail of a refusal: the blob is missing although its row says that it exists. */
export const BLOB_MISSING = 'the row says it is there';

/** Returns the address of what a run made, a transcript or speech; `undefined` when the blob is missing. */
export async function openResult(context: JobContext, { tenant, id, state, request }: UploadRecord) {
  const name = outcomeBlob({ tenant, id, run: state.run, name: inEdition('transcript', state.edition ?? 0) });
  const found = await context.blobs.find(OUTCOMES, name);
  if (!found) return undefined;
  const expires = context.now() + JOB_URL_S * 1_000;
  const url = await context.blobs.address(OUTCOMES, name, 'read', expires);
  const zoneKeyId = context.settings.ZONE_KEYS[request.zone]?.[0]?.kid ?? '';
  return { read: { url, etag: found.etag }, zone: request.zone, zoneKeyId, expires };
}
