// Uploads that are over, written through the stores as the functions would have left them.
import { BlobServiceClient } from '@azure/storage-blob';
import { dueKey, dueOf, newRecord, recordKey, type UploadRecord } from '../../../functions/jobs/record.ts';
import { TRANSACTION_ROWS_MAX } from '../../../functions/limits.ts';
import { openBlobs } from '../../../functions/store/blobs.ts';
import type { Change } from '../../../functions/store/rows.ts';
import { openTable } from '../../../functions/store/table-rows.ts';
import { CHANGED_AFTER } from '../../../infra/local/changed-after.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { OUTCOMES, outcomeBlob } from '../../../shared/jobs/paths.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';

const TENANT = 'dev';
/** Bytes of a short transcript, sealed. */
const TRANSCRIPT_BYTES = 900;
/** Requests to the stores at once. */
const WRITERS = 16;

function finishedUpload(at: number): UploadRecord {
  const now = Date.now();
  const number = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, at >> 16, at >> 8, at);
  const asked: NewUpload = {
    id: eventId(now, number),
    tenant: TENANT,
    class: 'batch',
    model: 'reference-en',
    sealed: true,
    formats: ['json'],
    zone: 'eu',
    keepDays: 0,
  };
  const record = newRecord(asked, now);
  const over: UploadRecord = {
    ...record,
    state: { ...record.state, status: 'done', seq: 4, bytes: 87_000, etag: '"0"', seconds: 2.7 },
    recorded: '1 done',
    ended: now,
    audio: 'deleted',
    transcript: 'held',
  };
  return { ...over, due: dueOf(over, now) };
}

/**
 * Writes rows and transcripts of `count` uploads. The functions host must not run meanwhile: it goes on
 * after them, as if it had seen their events.
 */
export async function writeFinished(connection: string, count: number): Promise<void> {
  const table = openTable(connection, 'uploads');
  const blobs = openBlobs(connection);
  const uploads = Array.from({ length: count }, (_, at) => finishedUpload(at));
  const perCommit = Math.floor(TRANSACTION_ROWS_MAX / 2);
  const commits = Array.from({ length: Math.ceil(count / perCommit) }, (_, at) =>
    uploads.slice(at * perCommit, (at + 1) * perCommit),
  );
  await each(commits, async (some) => {
    const changes = some.flatMap((record): Change[] => [
      { type: 'insert', key: recordKey(record.id), value: { ...record } },
      { type: 'insert', key: dueKey(record), value: {} },
    ]);
    if (!(await table.commit(TENANT, changes))) throw new Error('a row is there already');
  });
  await each(uploads, async ({ tenant, id }) => {
    const name = outcomeBlob({ tenant, id, run: 1, name: 'transcript' });
    await blobs.create(OUTCOMES, name, new Uint8Array(TRANSCRIPT_BYTES));
  });
  const cursor = BlobServiceClient.fromConnectionString(connection)
    .getContainerClient('azure-webjobs-hosts')
    .getBlockBlobClient('blobtriggers/functions/on-outcome/outcomes');
  await cursor.upload('', 0, { metadata: { after: `${CHANGED_AFTER}${(Date.now() + 1) * 1_000}` } });
}

async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const walk = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: WRITERS }, walk));
}
