// What the edge asks of uploads that exist: to see them, to stop them, to run them again, to read what came out.
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { OpenedTranscript, UploadList, UploadRow } from '../../shared/upload/contract.ts';
import { OUTCOMES, outcomeBlob, UPLOADS, type UploadPlace, uploadBlob } from '../../shared/upload/paths.ts';
import { isOver } from '../../shared/upload/state.ts';
import type { Office } from './office.ts';
import { type PageQuery, readPage } from './own.ts';
import { rowOf } from './record.ts';
import { release } from './release.ts';
import { erase, settle } from './settle.ts';
import { readUpload, step } from './step.ts';
import { readWaiting } from './waiting.ts';

const unknown = () => no(refuse('upload_unknown'));

export async function see(office: Office, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(office, place);
  return record ? ok(rowOf(record)) : unknown();
}

/** Returns the row with what the upload waits for. */
export async function show(office: Office, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(office, place);
  if (!record) return unknown();
  const waiting = await readWaiting(office, record);
  return ok({ ...rowOf(record), ...(waiting && { waiting }) });
}

/** Lists uploads, newest first. */
export async function list(office: Office, query: PageQuery): Promise<UploadList> {
  const { records, next } = await readPage(office, 'u!', query);
  return { uploads: records.map(rowOf), ...(next !== undefined && { next }) };
}

/** The row once it is newer than `after`; `undefined` when it has not become so within `waitMs`. */
export async function news<Row extends { readonly seq: number }>(
  office: Office,
  look: () => Promise<Result<Row>>,
  after: number,
  waitMs: number,
  pause: (ms: number) => Promise<void>,
): Promise<Result<Row | undefined>> {
  const until = office.now() + Math.min(waitMs, limits.uploadWaitSeconds.value * 1_000);
  while (true) {
    const row = await look();
    if (!row.ok || row.value.seq > after) return row;
    if (office.now() >= until) return ok(undefined);
    await pause(limits.uploadNewsMs.value);
  }
}

/** Stops it; of one that is over, deletes what is left. */
export async function cancel(office: Office, place: UploadPlace): Promise<Result<UploadRow>> {
  const stepped = await step(office, place, () => [{ type: 'cancelled' }]);
  if (!stepped) return unknown();
  if (stepped.moved) {
    await settle(office, place);
    await release(office, place.tenant, stepped.record.asked);
  } else {
    await erase(office, place);
  }
  return see(office, place);
}

/** The same audio once more, if it is still there. */
export async function rerun(office: Office, place: UploadPlace): Promise<Result<UploadRow>> {
  const record = await readUpload(office, place);
  if (!record) return unknown();
  const { status, etag } = record.state;
  if (!isOver(status) || status === 'expired') return no(refuse('upload_status_wrong', { status }));
  // What a document needs of its text lies with its segments, once it has them.
  const planned = record.state.of === 'document' && record.state.pieces > 0;
  const found = record.audio === 'held' ? await office.blobs.find(UPLOADS, uploadBlob(place)) : undefined;
  if (!planned && (!found || found.etag !== etag)) return no(refuse('upload_audio_gone'));
  const stepped = await step(office, place, (now) =>
    (planned ? now.transcript !== 'deleted' : now.audio === 'held') && now.state.run === record.state.run
      ? [{ type: 'rerun' }]
      : [],
  );
  // It may have been ours: a write whose answer was lost is tried again, and finds that it has happened.
  const begun = stepped?.record.state.run === record.state.run + 1;
  if (stepped && !stepped.moved && !planned && isOver(stepped.record.state.status) && stepped.record.audio !== 'held')
    return no(refuse('upload_audio_gone'));
  if (!stepped || !(stepped.moved || begun))
    return no(refuse('upload_status_wrong', { status: stepped?.record.state.status ?? status }));
  await release(office, place.tenant, record.asked);
  return ok(rowOf(stepped.record));
}

/** Where the transcript can be read, by an agent that can open it. */
export async function openTranscript(office: Office, place: UploadPlace): Promise<Result<OpenedTranscript>> {
  const record = await readUpload(office, place);
  if (!record) return unknown();
  const { state, asked, transcript } = record;
  if (state.status !== 'done') return no(refuse('upload_status_wrong', { status: state.status }));
  if (transcript !== 'held') return no(refuse('transcript_gone'));
  const name = outcomeBlob({ ...place, run: state.run, name: 'transcript' });
  const found = await office.blobs.find(OUTCOMES, name);
  if (!found) return no(refuse('transcript_gone', undefined, 'the row says it is there'));
  const expires = office.now() + limits.jobUrlSeconds.value * 1_000;
  const url = await office.blobs.address(OUTCOMES, name, 'read', expires);
  return ok({
    upload: rowOf(record),
    read: { url, etag: found.etag },
    zone: asked.zone,
    zoneKeyId: office.settings.ZONE_KEYS[asked.zone]?.[0]?.kid ?? '',
    expires,
  });
}
