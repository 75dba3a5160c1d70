import { beforeEach, describe, expect, it } from 'vitest';
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { JOB_ROUNDS_MAX } from '../../../functions/jobs/decide-redrive.ts';
import { grantUpload, UPLOADS_OPEN_MAX } from '../../../functions/jobs/grant-upload.ts';
import { UPLOAD_WINDOW } from '../../../functions/jobs/limits.ts';
import { onLost, onStalled } from '../../../functions/jobs/on-timer.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { deliveryKey, MINUTE, UPLOAD_GRANT_S, UPLOAD_OUTCOME_DAYS } from '../../../functions/jobs/record.ts';
import { replay } from '../../../functions/jobs/replay.ts';
import { settle } from '../../../functions/jobs/settle.ts';
import { sweepTenant } from '../../../functions/jobs/sweep-tenant.ts';
import { takeOutcome } from '../../../functions/jobs/take-outcome.ts';
import { cancelUpload, getUpload, listUploads, openTranscript, rerunUpload } from '../../../functions/jobs/uploads.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { DAY_MS } from '../../../shared/day.ts';
import { readJob, type UploadJob } from '../../../shared/jobs/job.ts';
import { outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import { outcomeBlob } from '../../../shared/jobs/paths.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { usageKey } from '../../../shared/jobs/usage.ts';
import type { QueueModel } from '../../fake/storage.ts';
import { admitHead } from '../../fault/batch/sealed-head.ts';
import { KEY } from '../../fault/batch/simulation.ts';
import { runs } from '../../seeds.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: JobContext;
beforeEach(() => {
  quiet = new Quiet();
  office = quiet.instant();
});

const open = (job: UploadJob) => openTakenJob(office, job, { agent: 'a', pool: 'p', zone: 'eu' });

describe('C11: one tenant does not starve another', () => {
  it('a tenant fills its window of jobs, then the other tenant is next', async () => {
    const files: NewUpload[] = [];
    for (let file = 0; file < UPLOAD_WINDOW + 4; file += 1) files.push(await quiet.uploaded({ tenant: 'many' }));
    const one = await quiet.uploaded({ tenant: 'one' });
    const queued = quiet.jobs();
    expect(queued.filter(({ tenant }) => tenant === 'many')).toHaveLength(UPLOAD_WINDOW);
    expect(queued.filter(({ upload }) => upload === one.id)).toHaveLength(1);
    await quiet.outcome(files[0] as NewUpload, 'transcript', { pieces: 1 });
    expect(quiet.jobs().filter(({ tenant }) => tenant === 'many')).toHaveLength(UPLOAD_WINDOW + 1);
    expect(quiet.jobs().at(-1)?.upload).toBe(files[UPLOAD_WINDOW]?.id);
  });

  it('pieces of a long file count in the UPLOAD_WINDOW, before younger files', async () => {
    const long = await quiet.uploaded();
    await quiet.outcome(long, 'plan', { pieces: 40 });
    const young = await quiet.uploaded();
    const work = quiet.jobs().filter(({ kind }) => kind === 'work');
    expect(work).toHaveLength(UPLOAD_WINDOW);
    expect(quiet.jobs().some(({ upload }) => upload === young.id)).toBe(false);
  });

  it('a more urgent class comes first', async () => {
    for (let file = 0; file < UPLOAD_WINDOW; file += 1) await quiet.uploaded();
    await quiet.uploaded();
    const urgent = await quiet.uploaded({ class: 'interactive' });
    const [first] = quiet.jobs();
    await cancelUpload(office, { tenant: 'acme', id: first?.upload ?? '' });
    expect(quiet.jobs().at(-1)?.upload).toBe(urgent.id);
  });

  // 10,000 in CI: a model of the stores that took no time for them would be another one.
  const FILES = runs(1_000, 10_000);
  it(`${FILES} tiny files of one tenant complete; another tenant’s file passes at once`, async () => {
    const queue = quiet.queues.get('eu') as QueueModel;
    for (let file = 0; file < FILES; file += 1) await quiet.uploaded({ tenant: 'many', sealed: false });
    const one = await quiet.uploaded({ tenant: 'one' });
    const ended: string[] = [];
    /** An agent double; takes the oldest message first, which queues do not guarantee. */
    const work = async (): Promise<void> => {
      const message = queue.messages.shift();
      const job = readJob(message?.body ?? '');
      if (!job) throw new Error('nothing is queued');
      const outcome = outcomeBlob({ tenant: job.tenant, id: job.upload, run: 1, name: 'transcript' });
      quiet.blobs.put(
        `mem:create:outcomes/${outcome}`,
        new Uint8Array(3),
        outcomeMetadataOf({ pieces: 1, seconds: 1 }),
      );
      await takeOutcome(office, outcome);
      ended.push(job.upload);
    };
    while (ended.at(-1) !== one.id) await work();
    expect(ended.length).toBeLessThanOrEqual(UPLOAD_WINDOW + 1);
    while (queue.messages.length > 0) await work();
    expect(new Set(ended).size).toBe(FILES + 1);
    expect(ended).toHaveLength(FILES + 1);
    expect(quiet.ledger.booked.size).toBe(FILES + 1);
    for (const mark of ['b!', 'o!', 'q!', 'w!']) expect(quiet.table.scan('many', mark, `${mark}~`, 9)).toEqual([]);
    expect(quiet.blobNames('uploads')).toEqual([]);
  }, 60_000);

  it('too many open uploads are refused, for that tenant only', async () => {
    const rows = quiet.table.of('acme');
    for (let open = 0; open <= UPLOADS_OPEN_MAX; open += 1) rows.set(`o!${open}`, { value: {}, version: '1' });
    await expect(quiet.granted()).rejects.toThrow('uploads_waiting');
    await expect(quiet.granted({ tenant: 'other' })).resolves.toBeDefined();
  });

  it('a tenant has as many open files as its token allows', async () => {
    const most = { open: 2 };
    const first = await quiet.uploaded({ most });
    await quiet.granted({ most });
    await expect(quiet.granted({ most })).rejects.toThrow('uploads_waiting');
    await quiet.outcome(first, 'transcript', { pieces: 1 });
    quiet.wait(MINUTE);
    await expect(quiet.granted({ most })).resolves.toBeDefined();
  });

  it('a tenant has bounded bytes in flight; an unknown size counts as largest', async () => {
    const most = { bytes: 1_000 };
    await expect(quiet.granted({ most, bytes: 1_001 })).rejects.toThrow('upload_too_large');
    await quiet.granted({ most, bytes: 600 });
    await expect(quiet.granted({ most, bytes: 500 })).rejects.toThrow('uploads_bytes');
    await expect(quiet.granted({ most })).rejects.toThrow('uploads_bytes');
    await expect(quiet.granted({ most, bytes: 400 })).resolves.toBeDefined();

    const other = { most, tenant: 'other' };
    const unknown = await quiet.granted(other);
    await expect(quiet.granted({ ...other, bytes: 1 })).rejects.toThrow('uploads_bytes');
    quiet.blobs.put(unknown.url, admitHead('other', unknown.upload.id, KEY.kid));
    await admitFile(office, `other/${unknown.upload.id}`);
    quiet.wait(MINUTE);
    await expect(quiet.granted({ ...other, bytes: 100 })).resolves.toBeDefined();
  });

  it('a file larger than its tenant’s byte allowance is refused on arrival', async () => {
    const upload = await quiet.uploaded({ most: { bytes: 100 } });
    expect(await quiet.row(upload)).toMatchObject({ status: 'refused', refusal: { reason: 'upload_too_large' } });
  });
});

describe('C11: usage of an upload is booked once', () => {
  const booked = () => [...quiet.ledger.booked.values()];

  it('with seconds, bytes and subject, at the end', async () => {
    const upload = await quiet.uploaded({ home: 'us', subject: 'alice', language: 'en' });
    expect(booked()).toEqual([]);
    quiet.wait(5_000);
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 61.5 });
    const { bytes } = await quiet.row(upload);
    const { id } = upload;
    const facts = { tenant: 'acme', upload: id, run: 1, home: 'us', subject: 'alice', class: 'batch', model: 'm' };
    expect(booked()).toEqual([{ ...facts, language: 'en', status: 200, seconds: 61.5, bytes, milliseconds: 5_000 }]);
  });

  it('without seconds if refused, and not at all without a file', async () => {
    const refused = await quiet.uploaded();
    await quiet.outcome(refused, 'refusal', { refusal: { reason: 'audio_unsupported' } });
    const cancelled = await quiet.uploaded();
    await cancelUpload(office, cancelled);
    const { upload: never } = await quiet.granted();
    await cancelUpload(office, never);
    expect(booked().map(({ upload, status, reason, seconds }) => [upload, status, reason, seconds])).toEqual([
      [refused.id, 415, 'audio_unsupported', 0],
      [cancelled.id, 499, 'client_gone', 0],
    ]);
  });

  it('once a run, after a lost and a repeated report', async () => {
    const upload = await quiet.uploaded({ keepDays: 1 });
    let away = true;
    const tells: string[] = [];
    office = {
      ...office,
      usage: {
        async book(usage) {
          tells.push(usageKey(usage));
          quiet.ledger.book(usage);
          // The receiver got the notice, and its answer was lost.
          if (away) throw new Error('away');
        },
      },
    };
    quiet.use(office);
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 4 });
    await rerunUpload(office, upload);
    quiet.wait(MINUTE);
    await sweepTenant(office, 'acme');
    away = false;
    await sweepTenant(office, 'acme');
    await sweepTenant(office, 'acme');
    expect(tells).toEqual([`${upload.id}.1`, `${upload.id}.1`, `${upload.id}.1`]);
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 4 }, true, 2);
    expect(booked().map(({ run, seconds }) => [run, seconds])).toEqual([
      [1, 4],
      [2, 4],
    ]);
    expect(quiet.table.scan('acme', 'b!', 'b!~', 9)).toEqual([]);
  });
});

it('C2: a plain file is never read, not even its beginning', async () => {
  const start: string[] = [];
  office = {
    ...office,
    blobs: {
      ...office.blobs,
      start: (container, found, length) => {
        start.push(found.name);
        return quiet.instant().blobs.start(container, found, length);
      },
    },
  };
  for (const sealed of [false, true]) {
    const upload = await quiet.uploaded({ sealed }, false);
    await admitFile(office, `acme/${upload.id}`);
    expect([(await quiet.row(upload)).status, start]).toEqual(['admitted', sealed ? [`acme/${upload.id}`] : []]);
  }
});

/** The clock of the timer: a third of a minute. */
const sweep = async () => {
  quiet.wait(MINUTE / 3);
  await onLost(office);
};

describe('T4: the timer finds lost events', () => {
  it('a lost file event, within a minute or a quarter of its age', async () => {
    const upload = await quiet.uploaded({}, false);
    quiet.wait(MINUTE);
    await onStalled(office);
    expect((await quiet.row(upload)).status).toBe('admitted');
    expect(quiet.jobs()).toHaveLength(1);
  });

  it('a lost outcome event', async () => {
    const upload = await quiet.uploaded();
    await open(quiet.jobs()[0] as UploadJob);
    await quiet.outcome(upload, 'transcript', { pieces: 1 }, false);
    quiet.wait(MINUTE);
    await onStalled(office);
    expect((await quiet.row(upload)).status).toBe('done');
  });

  it('a job that was never sent', async () => {
    const failing: JobContext = {
      ...office,
      jobs: { ...office.jobs, send: async () => Promise.reject(new Error('down')) },
    };
    const { upload, url } = await quiet.granted();
    quiet.blobs.put(url, admitHead(upload.tenant, upload.id, KEY.kid));
    await expect(admitFile(failing, `acme/${upload.id}`)).rejects.toThrow('down');
    expect(quiet.jobs()).toEqual([]);
    quiet.wait(MINUTE);
    await sweepTenant(office, 'acme');
    expect(quiet.jobs()).toHaveLength(1);
  });

  it('an untaken job is left alone for an hour', async () => {
    await quiet.uploaded();
    quiet.wait(30 * MINUTE);
    await onStalled(office);
    expect(quiet.jobs()).toHaveLength(1);
    quiet.wait(31 * MINUTE);
    await onStalled(office);
    expect(quiet.jobs()).toHaveLength(2);
  });

  it('an abandoned job is sent six times; then the upload ends, and can rerun', async () => {
    const upload = await quiet.uploaded();
    const begun = quiet.world.now;
    for (let tries = 1; tries <= JOB_ROUNDS_MAX; tries += 1) {
      expect(quiet.jobs()).toHaveLength(tries);
      expect(quiet.jobs().at(-1)?.attempt).toBe(tries);
      expect((await open(quiet.jobs().at(-1) as UploadJob)).ok).toBe(true);
      while (quiet.jobs().length === tries && (await quiet.row(upload)).status === 'admitted') await sweep();
    }
    // An engine that is away for half an hour ends nothing.
    expect(quiet.world.now - begun).toBeGreaterThan(30 * MINUTE);
    expect(await quiet.row(upload)).toMatchObject({
      status: 'refused',
      refusal: { reason: 'upload_abandoned', params: { tries: 6 } },
      audio: 'held',
    });
    expect((await rerunUpload(office, upload)).ok).toBe(true);
    expect(await quiet.row(upload)).toMatchObject({ status: 'admitted', run: 2 });
    expect(quiet.jobs().at(-1)).toMatchObject({ run: 2, attempt: 1 });
  });

  it('an upload that never came expires', async () => {
    const { upload } = await quiet.granted();
    quiet.wait(UPLOAD_GRANT_S * 1_000 + 2 * MINUTE);
    await onStalled(office);
    expect((await quiet.row(upload)).status).toBe('expired');
  });
});

describe('T6: hot storage holds what is used, audio and transcripts are deleted by policy', () => {
  it('audio at once, unless its owner keeps it; plain audio always at once', async () => {
    const gone = await quiet.uploaded();
    const kept = await quiet.uploaded({ keepDays: 2 });
    const plain = await quiet.uploaded({ keepDays: 2, sealed: false });
    for (const upload of [gone, kept, plain]) await quiet.outcome(upload, 'transcript', { pieces: 1 });
    expect(quiet.blobNames('uploads')).toEqual([`uploads/acme/${kept.id}`]);
    quiet.wait(2 * DAY_MS + MINUTE);
    await onStalled(office);
    expect(quiet.blobNames('uploads')).toEqual([]);
    expect((await quiet.row(kept)).audio).toBe('deleted');
  });

  it('every record of its deliveries, however many', async () => {
    const upload = await quiet.uploaded();
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    const rows = quiet.table.of('acme');
    for (let run = 1; run <= 250; run += 1) rows.set(deliveryKey(upload.id, run, 1), { value: {}, version: '1' });
    quiet.wait((UPLOAD_OUTCOME_DAYS + 1) * DAY_MS);
    await onStalled(office);
    expect([...quiet.table.of('acme').keys()]).toEqual([]);
  });

  it('intermediate results are swept, the transcript stays', async () => {
    const upload = await quiet.uploaded();
    await quiet.outcome(upload, 'pieces/0', {});
    await quiet.outcome(upload, 'pieces/1', {});
    await quiet.outcome(upload, 'plan', { pieces: 2 });
    await quiet.outcome(upload, 'results/0', {});
    await quiet.outcome(upload, 'results/1', {});
    await quiet.outcome(upload, 'transcript', { seconds: 9 });
    expect(quiet.blobNames('outcomes')).toEqual([`outcomes/acme/${upload.id}/1/transcript`]);
  });

  it('a transcript, until its owner deletes it, and then its news row', async () => {
    const upload = await quiet.uploaded();
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    expect((await openTranscript(office, upload)).ok).toBe(true);
    const { seq } = await quiet.row(upload);
    await cancelUpload(office, upload);
    expect(await quiet.row(upload)).toMatchObject({ status: 'done', transcript: 'deleted', seq: seq + 1 });
    expect(await openTranscript(office, upload)).toMatchObject({ refusal: { reason: 'transcript_gone' } });
    expect(quiet.blobs.blobs.size).toBe(0);
  });

  it('everything after its time, and the tenant with it', async () => {
    const upload = await quiet.uploaded();
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    quiet.wait((UPLOAD_OUTCOME_DAYS + 1) * DAY_MS);
    await onStalled(office);
    await onStalled(office);
    expect(await getUpload(office, upload)).toMatchObject({ refusal: { reason: 'upload_unknown' } });
    expect(quiet.blobs.blobs.size).toBe(0);
    expect([...quiet.table.partitions.values()].every((rows) => rows.size === 0)).toBe(true);
  });

  it('a file uploaded after the end, by a grant still valid', async () => {
    const { upload, url } = await quiet.granted();
    await cancelUpload(office, upload);
    quiet.blobs.put(url, new Uint8Array(5));
    quiet.wait(UPLOAD_GRANT_S * 1_000 + 2 * MINUTE);
    await onStalled(office);
    expect(quiet.blobs.blobs.size).toBe(0);
  });
});

describe('a run again', () => {
  it('needs the audio, as it was admitted', async () => {
    const upload = await quiet.uploaded({ keepDays: 1 });
    expect(await rerunUpload(office, upload)).toMatchObject({ refusal: { reason: 'upload_status_wrong' } });
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    quiet.blobs.put(`mem:write:uploads/acme/${upload.id}`, new Uint8Array(4));
    expect(await rerunUpload(office, upload)).toMatchObject({ refusal: { reason: 'upload_audio_gone' } });
  });

  it('makes outcomes of the run before worthless', async () => {
    const upload = await quiet.uploaded({ keepDays: 1 });
    await quiet.outcome(upload, 'refusal', { refusal: { reason: 'audio_unsupported' } });
    await rerunUpload(office, upload);
    await quiet.outcome(upload, 'transcript', { pieces: 1 }, true, 1);
    expect(await quiet.row(upload)).toMatchObject({ status: 'admitted', run: 2 });
    expect(quiet.blobNames('outcomes')).toEqual([]);
    await quiet.outcome(upload, 'transcript', { pieces: 1 }, true, 2);
    expect((await quiet.row(upload)).status).toBe('done');
  });
});

describe('T4: a run again while the end of the one before is being settled', () => {
  /** Goes on with `meanwhile` right before this call of the blobs, once. */
  const atCall = (call: 'list' | 'remove' | 'find', meanwhile: () => Promise<unknown>): JobContext => {
    let due = true;
    const blobs = {
      ...office.blobs,
      [call]: async (...told: [never, never]) => {
        if (due) {
          due = false;
          await meanwhile();
        }
        return office.blobs[call](...told);
      },
    };
    return { ...office, blobs };
  };

  it('the old run’s record does not sweep results of the new run', async () => {
    const upload = await quiet.uploaded({ keepDays: 1 });
    await quiet.outcome(upload, 'refusal', { refusal: { reason: 'audio_unsupported' } });
    const racing = atCall('list', async () => {
      expect((await rerunUpload(office, upload)).ok).toBe(true);
      await quiet.outcome(upload, 'transcript', { pieces: 1 }, true, 2);
    });
    await settle(racing, upload);
    expect(await quiet.row(upload)).toMatchObject({ status: 'done', run: 2, transcript: 'held' });
    expect((await openTranscript(office, upload)).ok).toBe(true);
  });

  it.each([0, 1])('a run is refused once its audio is going, kept for %d days', async (keepDays) => {
    const upload = await quiet.uploaded({ keepDays });
    await quiet.outcome(upload, 'transcript', { pieces: 1 }, false);
    let refused: unknown;
    const racing = atCall('remove', async () => {
      // A kept recording loses only its intermediate files.
      refused = await rerunUpload(office, upload);
    });
    if (keepDays > 0) {
      await takeOutcome(office, `acme/${upload.id}/1/transcript`);
      quiet.wait(keepDays * DAY_MS + MINUTE);
      await settle(racing, upload);
    } else await takeOutcome(racing, `acme/${upload.id}/1/transcript`);
    expect(refused).toMatchObject({ refusal: { reason: 'upload_audio_gone' } });
    expect(await quiet.row(upload)).toMatchObject({ status: 'done', run: 1, audio: 'deleted' });
    expect(quiet.blobNames('uploads')).toEqual([]);
  });

  it('a run that began first keeps its audio', async () => {
    const upload = await quiet.uploaded({ keepDays: 1 });
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    quiet.wait(DAY_MS + MINUTE);
    const racing = atCall('list', () => rerunUpload(office, upload));
    await settle(racing, upload);
    expect(await quiet.row(upload)).toMatchObject({ status: 'admitted', run: 2, audio: 'held' });
    expect(quiet.blobNames('uploads')).toHaveLength(1);
  });
});

describe('the dead-letter queue', () => {
  let receipt = 0;
  const die = (body: string) => {
    receipt += 1;
    quiet.queues.get('eu')?.dead.push({ body, visible: 0, receives: 5, receipt });
  };

  it('replay sends what is still wanted, and only that; again it changes nothing', async () => {
    const upload = await quiet.uploaded();
    const [job] = quiet.jobs();
    quiet.queues.get('eu')?.messages.splice(0);
    die(JSON.stringify(job));
    die('no job');
    die(JSON.stringify({ ...job, upload: eventId(0, new Uint8Array(10)) }));
    expect(await replay(office, 'eu')).toEqual({ replayed: 1, rerun: 0, dropped: 2 });
    expect(quiet.jobs()).toHaveLength(1);
    expect(await replay(office, 'eu')).toEqual({ replayed: 0, rerun: 0, dropped: 0 });
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    die(JSON.stringify(job));
    expect(await replay(office, 'eu')).toEqual({ replayed: 0, rerun: 0, dropped: 1 });
  });

  it('replay begins an upload again that had been given up', async () => {
    const upload = await quiet.uploaded();
    const [job] = quiet.jobs();
    await quiet.outcome(upload, 'refusal', { refusal: { reason: 'upload_abandoned', params: { tries: 3 } } });
    die(JSON.stringify(job));
    expect(await replay(office, 'eu')).toEqual({ replayed: 0, rerun: 1, dropped: 0 });
    expect(await quiet.row(upload)).toMatchObject({ status: 'admitted', run: 2 });
  });
});

describe('grants', () => {
  it('T4 A8 repeated requests are one until cancelled, with a key too', async () => {
    const { upload } = await quiet.granted();
    expect((await grantUpload(office, upload)).ok).toBe(true);
    expect(await grantUpload(office, { ...upload, model: 'other' })).toMatchObject({
      refusal: { reason: 'upload_exists' },
    });
    await cancelUpload(office, upload);
    expect(await grantUpload(office, upload)).toMatchObject({ refusal: { reason: 'upload_exists' } });
    const { upload: keyed } = await quiet.granted({ fingerprint: 'f' });
    await cancelUpload(office, keyed);
    expect(await grantUpload(office, keyed)).toMatchObject({ refusal: { reason: 'upload_exists' } });
  });

  it('are of the zones that are served', async () => {
    await expect(quiet.granted({ zone: 'moon' })).rejects.toThrow('zone_unserved');
  });

  it('many tiny files are one list, page by page', async () => {
    for (let file = 0; file < 250; file += 1) await quiet.granted();
    const first = await listUploads(office, { tenant: 'acme', after: undefined, limit: 100 });
    const second = await listUploads(office, { tenant: 'acme', after: first.next, limit: 100 });
    const third = await listUploads(office, { tenant: 'acme', after: second.next, limit: 100 });
    expect([first, second, third].map(({ uploads }) => uploads.length)).toEqual([100, 100, 50]);
    expect(third.next).toBeUndefined();
    const ids = [first, second, third].flatMap(({ uploads }) => uploads.map(({ id }) => id));
    expect(ids).toEqual([...ids].sort().reverse());
  });
});
