import { beforeEach, describe, expect, it } from 'vitest';
import { followLog } from '../../../functions/audit/entries/follow-log.ts';
import { eraseSubject } from '../../../functions/audit/erase/erase.ts';
import { openReporter } from '../../../functions/audit/report/report.ts';
import { searchLog } from '../../../functions/audit/search/search.ts';
import { openHide } from '../../../functions/audit/sidecar/hide.ts';
import { SidecarReader } from '../../../functions/audit/sidecar/sidecar.ts';
import { admitFile } from '../../../functions/jobs/admit.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { onStalled } from '../../../functions/jobs/on-timer.ts';
import { UPLOAD_FILE_CHECK_S, UPLOAD_GRANT_S } from '../../../functions/jobs/record.ts';
import { settle } from '../../../functions/jobs/settle.ts';
import { cancelUpload, rerunUpload } from '../../../functions/jobs/uploads.ts';
import { DAY_MS } from '../../../shared/day.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { createFakeReporter, type FakeReporter } from '../../fake/reporter.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { deskOf } from '../audit/erase-world.ts';
import { HiddenLog, ZONE } from '../audit/hidden-log.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let audit: FakeReporter;
let office: JobContext;
beforeEach(() => {
  quiet = new Quiet();
  audit = createFakeReporter();
  office = { ...quiet.instant(), audit };
  quiet.use(office);
});

const placeOf = ({ tenant, id }: NewUpload) => ({ tenant, id });
const told = () => audit.reports.map(({ draft }) => draft);
const types = () => told().map(({ type }) => type);

/** A commitment in the form of the zone's Gate. */
const commitment = `c1:${'a'.repeat(64)}`;

describe('C9 A1 the record of a file', () => {
  it('has arrival, end and deletion, each once however often it is settled', async () => {
    const upload = await quiet.uploaded({ subject: 'ann', commitment, language: 'en' });
    const who = {
      tenant: 'acme',
      request: upload.id,
      action: 'upload.run',
      subject: commitment,
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
    expect(JSON.stringify(audit.reports)).not.toContain('ann');
    expect(JSON.stringify(await quiet.row(upload))).not.toContain('c1:');
  });

  it('C12 is found by its subject, and unreadable after its erasure', async () => {
    const log = new HiddenLog();
    const keys = log.newKeys();
    const after = () => ({ elapsed: new Promise<never>(() => {}), cancel() {} });
    const reporter = openReporter({ store: log.store, hide: () => openHide(keys), now: () => log.now, after });
    quiet.use({ ...quiet.instant(), audit: reporter });
    const upload = await quiet.uploaded({ subject: 'ann', commitment });
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 3 });
    await log.commit();
    const index = { zone: ZONE, store: log.store, rows: new MemoryRows(), keys: log.newKeys() };
    await followLog(index);
    const { hits } = await searchLog(index, { tenant: 'acme', subjects: [commitment] });
    expect(hits.map(({ entry }) => JSON.parse(entry) as unknown)).toMatchObject([
      { type: 'inference.attempt', action: 'upload.run', req: upload.id },
      { type: 'inference.complete', action: 'upload.run', req: upload.id },
    ]);
    const { entries } = log.read();
    const shown = async () => new SidecarReader(log.place(), log.newKeys()).read(0, entries);
    const ofEnd = hits[1]?.index ?? -1;
    expect((await shown())[ofEnd]).toMatchObject({ subject: expect.any(String), audioSeconds: expect.any(String) });
    const asked = { tenant: 'acme', subject: commitment, basis: 'gdpr-17' };
    expect(await eraseSubject(deskOf(log), asked)).toMatchObject({ value: { outcome: 'done' } });
    expect((await shown())[ofEnd]).toBe('erased');
    expect((await shown())[hits[0]?.index ?? -1]).toBe('erased');
  });

  it('a row without commitment is reported without a subject', async () => {
    const upload = await quiet.uploaded({ subject: 'ann' });
    await quiet.outcome(upload, 'transcript', { pieces: 1, seconds: 3 });
    expect(types()).toEqual(['inference.attempt', 'inference.complete', 'content.erased']);
    expect(told().some((draft) => 'subject' in draft)).toBe(false);
  });

  it('a repeated step reports events with the same ids', async () => {
    const upload = await quiet.uploaded();
    const again: JobContext = { ...office, rows: { ...office.rows, commit: async () => false } };
    const other = await quiet.granted();
    quiet.blobs.put(other.url, new Uint8Array(9));
    await expect(admitFile(again, `acme/${other.upload.id}`)).rejects.toThrow();
    await admitFile(office, `acme/${other.upload.id}`);
    const ids = audit.reports.filter(({ draft }) => draft.type === 'inference.attempt').map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(2);
    expect(new Set(ids).size).toBe(2);
    expect(ids[0]).not.toBe(ids[1]);
    expect(upload.id).not.toBe(ids[0]);
  });

  it('no step begins or ends unrecorded; it completes once the log answers', async () => {
    const { upload, url } = await quiet.granted();
    quiet.blobs.put(url, new Uint8Array(9));
    audit.refuses = true;
    await expect(admitFile(office, `acme/${upload.id}`)).rejects.toThrow();
    expect((await quiet.row(upload)).status).toBe('granted');
    audit.refuses = false;
    await admitFile(office, `acme/${upload.id}`);
    // It is no sealed file: refused, with an attempt and an end.
    expect(told()).toMatchObject([
      { type: 'inference.attempt' },
      { type: 'inference.complete', status: 400, reason: 'envelope_invalid' },
      {},
    ]);
  });

  it('a late, cancelled or repeated upload', async () => {
    const late = await quiet.granted();
    quiet.wait(UPLOAD_GRANT_S * 1_000 + 2 * UPLOAD_FILE_CHECK_S * 1_000);
    await onStalled(office);
    expect(told()).toMatchObject([{ type: 'inference.denied', request: late.upload.id, reason: 'upload_late' }]);
    const stopped = await quiet.uploaded({ keepDays: 3 });
    await cancelUpload(office, placeOf(stopped));
    expect(told().slice(2)).toMatchObject([
      { type: 'inference.complete', status: 499, reason: 'client_gone' },
      { type: 'content.erased' },
    ]);
    const kept = await quiet.uploaded({ keepDays: 3 });
    await quiet.outcome(kept, 'transcript', { pieces: 1 });
    expect((await rerunUpload(office, placeOf(kept))).ok).toBe(true);
    await quiet.outcome(kept, 'transcript', { pieces: 1 }, true, 2);
    const ofKept = audit.reports.filter(({ draft }) => 'request' in draft && draft.request === kept.id);
    const [attempt, complete] = ['inference.attempt', 'inference.complete'];
    expect(ofKept.map(({ draft }) => draft.type)).toEqual([attempt, complete, attempt, complete]);
    expect(new Set(ofKept.map(({ id }) => id)).size).toBe(4);
  });

  it('retained content is deleted with a record, when due or by its owner', async () => {
    const kept = await quiet.uploaded({ keepDays: 2 });
    await quiet.outcome(kept, 'transcript', { pieces: 1 });
    expect(types()).toEqual(['inference.attempt', 'inference.complete']);
    quiet.wait(2 * DAY_MS);
    await onStalled(office);
    await settle(office, placeOf(kept));
    await cancelUpload(office, placeOf(kept));
    expect(told().slice(2)).toMatchObject([
      { type: 'content.erased', what: 'audio', why: 'expired' },
      { type: 'content.erased', what: 'all', why: 'owner' },
    ]);
  });
});
