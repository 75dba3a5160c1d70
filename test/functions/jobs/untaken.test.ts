// Queues without a consumer: warnings, and the end of their uploads.

import { beforeEach, describe, expect, it } from 'vitest';
import type { JobContext, LogLine } from '../../../functions/jobs/context.ts';
import { JOB_UNTAKEN_HOURS } from '../../../functions/jobs/decide-redrive.ts';
import { UPLOAD_WINDOW } from '../../../functions/jobs/limits.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { MINUTE, UPLOAD_RETRY_DAYS } from '../../../functions/jobs/record.ts';
import { rerunUpload } from '../../../functions/jobs/uploads.ts';
import { DAY_MS } from '../../../shared/day.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: JobContext;
let lines: LogLine[];
beforeEach(() => {
  quiet = new Quiet();
  lines = [];
  office = { ...quiet.instant(), log: (line) => lines.push(line) };
});

describe('C11: depth and age of the queues', () => {
  it('are one log line of numbers per zone', async () => {
    const depth = { waiting: 3, taken: 2, dead: 1 };
    office = { ...office, jobs: { ...office.jobs, depth: async () => depth } };
    await quiet.uploaded();
    quiet.wait(5 * MINUTE);
    await onStalled(office);
    expect(lines.filter(({ what }) => what === 'queue')).toEqual([
      { what: 'queue', zone: 'eu', ...depth, oldestSeconds: 300 },
      { what: 'queue', zone: 'us', ...depth },
    ]);
  });
});

const HOUR = 60 * MINUTE;
const hours = async (count: number) => {
  for (let hour = 0; hour < count; hour += 1) {
    quiet.wait(HOUR);
    await onStalled(office);
  }
};

describe('T4: with no agents at all', () => {
  it('an accepted upload is resent hourly, ends after a day, and can rerun', async () => {
    const upload = await quiet.uploaded();
    await hours(JOB_UNTAKEN_HOURS - 1);
    expect((await quiet.row(upload)).status).toBe('admitted');
    await hours(1);
    expect(await quiet.row(upload)).toMatchObject({
      status: 'refused',
      refusal: { reason: 'upload_abandoned', params: { tries: 1 } },
      audio: 'held',
    });
    const sent = quiet.jobs().length;
    expect(sent).toBeLessThanOrEqual(JOB_UNTAKEN_HOURS);
    await hours(3);
    expect(quiet.jobs()).toHaveLength(sent);
    expect((await rerunUpload(office, upload)).ok).toBe(true);
    await hours(JOB_UNTAKEN_HOURS);
    expect(await quiet.row(upload)).toMatchObject({ status: 'refused', run: 2, audio: 'held' });
    quiet.wait(UPLOAD_RETRY_DAYS * DAY_MS + MINUTE);
    await onStalled(office);
    expect((await quiet.row(upload)).audio).toBe('deleted');
    expect(quiet.blobNames('uploads')).toEqual([]);
  });

  it('more than fit into the queue end, too, one window after the other', async () => {
    const count = UPLOAD_WINDOW + 2;
    for (let file = 0; file < count; file += 1) await quiet.uploaded();
    await hours(2 * JOB_UNTAKEN_HOURS + 2);
    expect(quiet.ledger.booked.size).toBe(count);
    for (const mark of ['o!', 'q!', 'w!']) expect(quiet.table.scan('acme', mark, `${mark}~`, 9)).toEqual([]);
  });

  it('C11: an untaken model leaves files for another model running', async () => {
    for (let file = 0; file < UPLOAD_WINDOW + 4; file += 1) await quiet.uploaded({ model: 'dead' });
    const live = await quiet.uploaded({ model: 'dead-or/alive?' });
    expect(quiet.jobs().at(-1)).toMatchObject({ upload: live.id, model: 'dead-or/alive?' });
    // And when its first sending was lost, by the timer.
    quiet.queues.get('eu')?.messages.splice(0);
    await hours(1);
    expect(quiet.jobs().filter(({ upload }) => upload === live.id)).toHaveLength(1);
    expect([...quiet.table.of('acme').keys()].filter((key) => /[\\/#?]/.test(key))).toEqual([]);
  });
});
