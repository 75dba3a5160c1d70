// The storage calls of one file, and the rows and blobs that they return.
import { expect, it } from 'vitest';
import { isInScope, StorageSilent, serveInScope } from '../../../functions/caller/request-scope.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { recordKey } from '../../../functions/jobs/record.ts';
import { release } from '../../../functions/jobs/release.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { Quiet } from './quiet.ts';

interface Cost {
  calls: number;
  rows: number;
}

/** Counts calls of the stores, and what lists and scans return. */
function counting(office: JobContext, cost: Cost): JobContext {
  const count = <T extends object>(store: T): T =>
    new Proxy(store, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...given: unknown[]) => {
          const result: unknown = await Reflect.apply(method, target, given);
          cost.calls += 1;
          cost.rows += Array.isArray(result) ? result.length : 1;
          return result;
        };
      },
    });
  return { ...office, rows: count(office.rows), blobs: count(office.blobs), jobs: count(office.jobs) };
}

/** Copies the rows and blobs of an upload that is over to other ids. */
function copyFinished(quiet: Quiet, id: string, copies: number): void {
  const rows = [...quiet.table.of('acme')].filter(([key]) => key.includes(id) || key === recordKey(id));
  const blobs = quiet.blobNames('outcomes');
  for (let copy = 0; copy < copies; copy += 1) {
    const other = eventId(quiet.world.now, Uint8Array.of(255, 255, 0, 0, 0, 0, 0, 0, copy >> 8, copy & 255));
    for (const [key, stored] of rows) {
      const moved = key.replace(recordKey(id), recordKey(other)).replace(id, other);
      quiet.table.of('acme').set(moved, { ...stored, value: { ...stored.value, id: other } });
    }
    for (const name of blobs) quiet.blobs.put(`mem:create:${name.replace(id, other)}`, new Uint8Array(3));
  }
}

/** One file from its grant to its end, and a look of the timer. */
async function costOfOne(quiet: Quiet, cost: Cost): Promise<Cost & { id: string }> {
  const before = { ...cost };
  const upload = await quiet.uploaded();
  const job = quiet.jobs().find((one) => one.upload === upload.id);
  if (!job) throw new Error('no job');
  expect((await openTakenJob(quiet.instant(), job, { agent: 'agent', pool: 'pool', zone: 'eu' })).ok).toBe(true);
  await quiet.outcome(upload, 'transcript', { seconds: 3 });
  expect((await quiet.row(upload)).status).toBe('done');
  await onStalled(quiet.instant());
  return { id: upload.id, calls: cost.calls - before.calls, rows: cost.rows - before.rows };
}

it('C11, T4: a file costs the same calls and rows after 200 finished files', async () => {
  const quiet = new Quiet();
  const cost: Cost = { calls: 0, rows: 0 };
  quiet.use(counting(quiet.instant(), cost));
  // The first file of all also begins the tenant.
  await costOfOne(quiet, cost);
  const first = await costOfOne(quiet, cost);
  const rows = quiet.table.of('acme').size;
  copyFinished(quiet, first.id, 200);
  expect(quiet.table.of('acme').size).toBe(rows + 400);
  const later = await costOfOne(quiet, cost);
  expect({ calls: later.calls, rows: later.rows }).toEqual({ calls: first.calls, rows: first.rows });
});

it('C11: outcomes that come at once do not race for the waiting jobs', async () => {
  const quiet = new Quiet();
  const office = quiet.instant();
  let lost = 0;
  const commit: JobContext['rows']['commit'] = async (...given) => {
    const done = await office.rows.commit(...given);
    lost += done ? 0 : 1;
    return done;
  };
  quiet.use({ ...office, rows: { ...office.rows, commit } });
  const uploads = [];
  for (let file = 0; file < 40; file += 1) uploads.push(await quiet.uploaded());
  const queued = uploads.slice(0, quiet.jobs().length);
  await Promise.all(queued.map((upload) => quiet.outcome(upload, 'transcript', { seconds: 3 })));
  expect(quiet.jobs()).toHaveLength(2 * queued.length);
  expect(lost).toBe(0);
});

it('T4 C9: a request neither waits for runs of events nor fails them', async () => {
  const quiet = new Quiet();
  await quiet.uploaded();
  const [job] = quiet.jobs();
  if (!job) throw new Error('no job');
  const { rows, ...stores } = quiet.instant();
  const stalled = Promise.withResolvers<void>();
  const scan: JobContext['rows']['scan'] = async (...given) => {
    if (isInScope()) throw new StorageSilent('storage does not answer');
    await stalled.promise;
    return rows.scan(...given);
  };
  const office = { ...stores, rows: { ...rows, scan } };
  const first = release(office, 'acme', job);
  const request = serveInScope({ deadline: undefined, now: () => quiet.world.now }, async () => {
    await release(office, 'acme', job);
    return { status: 200 };
  });
  const second = release(office, 'acme', job);
  expect(await request).toMatchObject({ status: 503 });
  stalled.resolve();
  expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
});
