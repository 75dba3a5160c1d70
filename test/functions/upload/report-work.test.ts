import { beforeEach, describe, expect, it } from 'vitest';
import { arrive } from '../../../functions/upload/arrive.ts';
import { cancel, rerun } from '../../../functions/upload/asked.ts';
import type { Office } from '../../../functions/upload/office.ts';
import { onStalled } from '../../../functions/upload/on-timer.ts';
import { DAY } from '../../../functions/upload/record.ts';
import { settle } from '../../../functions/upload/settle.ts';
import { limits } from '../../../shared/limits.ts';
import type { NewUpload } from '../../../shared/upload/contract.ts';
import { type ReporterDouble, reporterDouble } from '../audit/report-double.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let audit: ReporterDouble;
let office: Office;
beforeEach(() => {
  quiet = new Quiet();
  audit = reporterDouble();
  office = { ...quiet.instant(), audit };
  quiet.use(office);
});

const placeOf = ({ tenant, id }: NewUpload) => ({ tenant, id });
const told = () => audit.reports.map(({ draft }) => draft);
const types = () => told().map(({ type }) => type);

describe('C9 A1 what becomes of a file is on record', () => {
  it('that it came before it is worked on, how it ended, and that it was deleted, each once however often it is settled', async () => {
    const upload = await quiet.uploaded({ subject: 'ann', language: 'en' });
    const who = {
      tenant: 'acme',
      request: upload.id,
      action: 'upload.run',
      subject: 'ann',
      model: 'm',
      language: 'en',
    };
    expect(audit.reports).toMatchObject([{ zone: 'eu', draft: { type: 'inference.attempt', ...who } }]);
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 3 });
    const end = [
      { type: 'inference.complete', ...who, status: 200, audioSeconds: 3 },
      { type: 'content.erased', what: 'audio', why: 'ended' },
    ];
    expect(told().slice(1)).toMatchObject(end);
    await settle(office, placeOf(upload));
    await onStalled(office);
    expect(told()).toHaveLength(3);
  });

  it('a step that is tried again says the same: events have the ids of what they are about', async () => {
    const upload = await quiet.uploaded();
    const again: Office = { ...office, rows: { ...office.rows, commit: async () => false } };
    const other = await quiet.granted();
    quiet.blobs.put(other.url, new Uint8Array(9));
    await expect(arrive(again, `acme/${other.upload.id}`)).rejects.toThrow();
    await arrive(office, `acme/${other.upload.id}`);
    const ids = audit.reports.filter(({ draft }) => draft.type === 'inference.attempt').map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(2);
    expect(new Set(ids).size).toBe(2);
    expect(ids[0]).not.toBe(ids[1]);
    expect(upload.id).not.toBe(ids[0]);
  });

  it('nothing is begun or ended unrecorded: it is done when the log takes it again', async () => {
    const { upload, url } = await quiet.granted();
    quiet.blobs.put(url, new Uint8Array(9));
    audit.refuses = true;
    await expect(arrive(office, `acme/${upload.id}`)).rejects.toThrow();
    expect((await quiet.row(upload)).status).toBe('granted');
    audit.refuses = false;
    await arrive(office, `acme/${upload.id}`);
    // It is no sealed file: refused, with an attempt and an end.
    expect(told()).toMatchObject([
      { type: 'inference.attempt' },
      { type: 'inference.complete', status: 400, reason: 'envelope_invalid' },
      {},
    ]);
  });

  it('one that never came, or was cancelled, or is run again', async () => {
    const late = await quiet.granted();
    quiet.wait(limits.uploadGrantSeconds.value * 1_000 + 2 * limits.uploadLookSeconds.value * 1_000);
    await onStalled(office);
    expect(told()).toMatchObject([{ type: 'inference.denied', request: late.upload.id, reason: 'upload_late' }]);
    const stopped = await quiet.uploaded({ keepDays: 3 });
    await cancel(office, placeOf(stopped));
    expect(told().slice(2)).toMatchObject([
      { type: 'inference.complete', status: 499, reason: 'client_gone' },
      { type: 'content.erased' },
    ]);
    const kept = await quiet.uploaded({ keepDays: 3 });
    await quiet.outcome(kept, 'transcript', { pieces: 1 });
    expect((await rerun(office, placeOf(kept))).ok).toBe(true);
    await quiet.outcome(kept, 'transcript', { pieces: 1 }, true, 2);
    const ofKept = audit.reports.filter(({ draft }) => 'request' in draft && draft.request === kept.id);
    const [attempt, complete] = ['inference.attempt', 'inference.complete'];
    expect(ofKept.map(({ draft }) => draft.type)).toEqual([attempt, complete, attempt, complete]);
    expect(new Set(ofKept.map(({ id }) => id)).size).toBe(4);
  });

  it('what is kept for a while is deleted with a word: by its time, or by its owner', async () => {
    const kept = await quiet.uploaded({ keepDays: 2 });
    await quiet.outcome(kept, 'transcript', { pieces: 1 });
    expect(types()).toEqual(['inference.attempt', 'inference.complete']);
    quiet.wait(2 * DAY);
    await onStalled(office);
    await settle(office, placeOf(kept));
    await cancel(office, placeOf(kept));
    expect(told().slice(2)).toMatchObject([
      { type: 'content.erased', what: 'audio', why: 'expired' },
      { type: 'content.erased', what: 'all', why: 'owner' },
    ]);
  });
});
