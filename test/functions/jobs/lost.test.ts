// T4: lost work is found within two minutes, work that goes on is not begun twice, and a status says what is waited for.
import { beforeEach, describe, expect, it } from 'vitest';
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext, LogLine } from '../../../functions/jobs/context.ts';
import {
  decideRedrive,
  hasLost,
  JOB_RESEND_MS,
  JOB_SILENT_MAX_MS,
  JOB_SILENT_MS,
  JOB_SUSPECT_MS,
  JOB_UNTAKEN_HOURS,
} from '../../../functions/jobs/decide-redrive.ts';
import { JOB_LEASE_MS, JOB_SENDING_MS, UPLOAD_WINDOW } from '../../../functions/jobs/limits.ts';
import { onLost, onStalled } from '../../../functions/jobs/on-timer.ts';
import { openTakenJob } from '../../../functions/jobs/open-job.ts';
import { type JobRecord, MINUTE } from '../../../functions/jobs/record.ts';
import { inspectUpload } from '../../../functions/jobs/uploads.ts';
import type { UploadJob } from '../../../shared/jobs/job.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import type { Message, QueueModel } from '../../fake/storage.ts';
import { admitHead } from '../../fault/batch/sealed-head.ts';
import { KEY } from '../../fault/batch/simulation.ts';
import { Quiet } from './quiet.ts';

/** Distance of two sweeps (functions/triggers.ts). */
const SWEEP_MS = MINUTE / 3;

let quiet: Quiet;
let office: JobContext;
let lines: LogLine[];
let queue: QueueModel;
beforeEach(() => {
  quiet = new Quiet();
  lines = [];
  office = { ...quiet.instant(), log: (line) => lines.push(line) };
  queue = quiet.queues.get('eu') as QueueModel;
});

const open = (job: UploadJob, agent = 'a') => openTakenJob(office, job, { agent, pool: 'p', zone: 'eu' });
const newest = () => quiet.jobs().at(-1) as UploadJob;
const resent = () => lines.filter(({ what }) => what === 'resent').length;

/** Sweeps go on for two minutes, or until `found`. */
async function isFound(found: () => boolean | Promise<boolean>, report = async () => {}): Promise<boolean> {
  for (let waited = 0; waited < 2 * MINUTE; waited += SWEEP_MS) {
    quiet.wait(SWEEP_MS);
    await report();
    await onStalled(office);
    if (await found()) return true;
  }
  return false;
}

describe('T4: lost work is found within two minutes', () => {
  it('the event of a file that came an hour after its grant', async () => {
    const { upload, url } = await quiet.granted();
    await isFound(() => false);
    for (let minute = 0; minute < 60; minute += 1) {
      quiet.wait(MINUTE);
      await onStalled(office);
    }
    quiet.blobs.put(url, admitHead(upload.tenant, upload.id, KEY.kid));
    expect(await isFound(async () => (await quiet.row(upload)).status === 'admitted')).toBe(true);
  });

  it('a message untaken while a file of another tenant is in work', async () => {
    const lost = await quiet.uploaded();
    queue.messages.splice(0);
    await quiet.uploaded({ tenant: 'other' });
    const [taken] = queue.messages as [Message];
    const job = newest();
    const work = async () => {
      queue.keep(taken, MINUTE);
      expect((await open(job)).ok).toBe(true);
    };
    await work();
    expect(await isFound(() => resent() === 1, work)).toBe(true);
    expect(newest()).toMatchObject({ upload: lost.id, attempt: 2 });
  });

  it('a message that an agent had taken when both died', async () => {
    await quiet.uploaded();
    expect((await open(newest())).ok).toBe(true);
    queue.messages.splice(0);
    expect(await isFound(() => quiet.jobs().length === 1)).toBe(true);
    expect(newest().attempt).toBe(2);
  });

  it('an outcome after its event and the agent’s note were lost', async () => {
    const upload = await quiet.uploaded();
    queue.messages.splice(0);
    await quiet.outcome(upload, 'transcript', { pieces: 1 }, false);
    expect(await isFound(async () => (await quiet.row(upload)).status === 'done')).toBe(true);
    expect([resent(), quiet.ledger.booked.size]).toEqual([0, 1]);
  });

  it('though the look at another upload of the tenant fails each time', async () => {
    const bad = await quiet.uploaded();
    const good = await quiet.uploaded();
    for (const job of quiet.jobs()) expect((await open(job)).ok).toBe(true);
    await quiet.outcome(good, 'transcript', { pieces: 1 }, false);
    const list: JobContext['blobs']['list'] = async (container, prefix) => {
      if (prefix.includes(bad.id)) throw new Error('cannot be listed');
      return quiet.instant().blobs.list(container, prefix);
    };
    office = { ...office, blobs: { ...office.blobs, list } };
    quiet.wait(MINUTE);
    await expect(onStalled(office)).rejects.toThrow('cannot be listed');
    expect((await quiet.row(good)).status).toBe('done');
  });
});

describe('T4: work that goes on is not begun twice', () => {
  it('while its agent reports, also after functions were away for an hour', async () => {
    await quiet.uploaded();
    const job = newest();
    const report = async () => void expect((await open(job)).ok).toBe(true);
    expect(await isFound(() => resent() > 0, report)).toBe(false);
    quiet.wait(60 * MINUTE);
    await onStalled(office);
    expect(await isFound(() => resent() > 0, report)).toBe(false);
  });

  it('another copy is refused while an agent reports; its own message returns', async () => {
    await quiet.uploaded();
    const first = newest();
    expect((await open(first, 'a')).ok).toBe(true);
    const copy = { ...first, attempt: 2 };
    expect(await open(copy, 'b')).toMatchObject({ ok: false, refusal: { reason: 'upload_status_wrong' } });
    expect((await open(first, 'b')).ok).toBe(true);
    quiet.wait(JOB_LEASE_MS);
    expect((await open(copy, 'c')).ok).toBe(true);
    expect(await open(first, 'b')).toMatchObject({ ok: false });
  });

  it('overlapping sweeps send one copy of a job that an agent has left', async () => {
    await quiet.uploaded();
    expect((await open(newest())).ok).toBe(true);
    queue.messages.splice(0);
    for (let swept = 0; swept < 12; swept += 1) {
      quiet.wait(SWEEP_MS);
      await Promise.all([onStalled(office), onLost(office)]);
    }
    const attempts = quiet.jobs().map(({ attempt }) => attempt);
    expect(attempts).toContain(2);
    expect(new Set(attempts).size).toBe(attempts.length);
  });

  it('a job that waits its turn in the queue is not sent again', async () => {
    for (let file = 0; file < 4; file += 1) await quiet.uploaded();
    expect(await isFound(() => resent() > 0)).toBe(false);
  });
});

describe('T4: a status says what an upload waits for', () => {
  const wait = async (upload: NewUpload) => {
    const shown = await inspectUpload(office, upload);
    return shown.ok ? shown.value.waiting : shown;
  };

  it('a file, a slot or a pool; nothing while in work or ended', async () => {
    const created = quiet.world.now + 1;
    const { upload, url } = await quiet.granted();
    quiet.wait(MINUTE);
    expect(await wait(upload)).toEqual({ for: 'upload', since: created });
    quiet.blobs.put(url, admitHead(upload.tenant, upload.id, KEY.kid));
    await admitFile(office, `acme/${upload.id}`);
    const sent = quiet.world.now;
    quiet.wait(MINUTE);
    expect(await wait(upload)).toEqual({ for: 'pool', since: sent });
    const opened = quiet.world.now;
    expect((await open(newest())).ok).toBe(true);
    expect(await wait(upload)).toBeUndefined();
    quiet.wait(JOB_SILENT_MS);
    expect(await wait(upload)).toEqual({ for: 'pool', since: opened });
    for (let file = 1; file < UPLOAD_WINDOW; file += 1) await quiet.uploaded();
    const last = await quiet.uploaded();
    expect(await wait(last)).toEqual({ for: 'slot', since: quiet.world.now });
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    expect(await wait(upload)).toBeUndefined();
  });

  it('the queue while SQS takes no job', async () => {
    const { upload, url } = await quiet.granted();
    quiet.blobs.put(url, admitHead(upload.tenant, upload.id, KEY.kid));
    const send = async () => Promise.reject(new Error('down'));
    const failing = { ...office, jobs: { ...office.jobs, send } };
    await expect(admitFile(failing, `acme/${upload.id}`)).rejects.toThrow('down');
    expect(await wait(upload)).toEqual({ for: 'queue', since: quiet.world.now });
  });
});

describe('decisions of the sweep', () => {
  const at = 1_000 * MINUTE;
  const record = (facts: Partial<JobRecord>): JobRecord => ({ job: {} as UploadJob, since: at, queued: at, ...facts });
  const silent = JOB_SILENT_MS;

  it.each<[string, Partial<JobRecord>, number]>([
    ['none', { sent: at, opened: at }, silent - 1],
    ['suspect', { sent: at, opened: at }, silent],
    ['suspect', { sent: at, opened: at, suspected: at - 1 }, silent],
    ['none', { sent: at, opened: at, suspected: at + silent }, silent + JOB_SUSPECT_MS - 1],
    ['resend', { sent: at, opened: at, suspected: at + silent }, silent + JOB_SUSPECT_MS],
    ['suspect', { sent: at, opened: at, rounds: 2 }, silent],
    ['none', { sent: at, opened: at, rounds: 3 }, 3 * silent - 1],
    ['give-up', { sent: at, opened: at, rounds: 5, suspected: at + 1 }, JOB_SILENT_MAX_MS],
    ['send', {}, JOB_SENDING_MS],
    ['none', { sent: at }, JOB_RESEND_MS - 1],
    ['give-up', { sent: at }, JOB_UNTAKEN_HOURS * 60 * MINUTE],
  ])('%s: %j after %d ms', (redrive, facts, after) => {
    expect(decideRedrive(record(facts), at + after)).toBe(redrive);
  });

  it.each([
    // Jobs that no agent has opened, and those that agents report; messages that are visible, and that were received.
    [1, 0, 0, 0, true],
    [1, 0, 1, 0, false],
    [1, 0, 0, 1, false],
    [1, 1, 0, 1, true],
    [3, 2, 2, 2, true],
    [3, 2, 3, 1, false],
    [0, 5, 0, 0, false],
  ])('%d unopened and %d reported jobs, %d visible and %d received messages: lost %s', (...facts) => {
    const [unopened, opened, waiting, taken, lost] = facts;
    expect(hasLost({ waiting, taken }, unopened, opened)).toBe(lost);
  });
});
