// Gaps of a log: found by health and by verification, and accepted by an operator in an entry of the log.
import { describe, expect, it } from 'vitest';
import { followLog } from '../../../functions/audit/entries/follow-log.ts';
import { AUDIT_GAPS_LISTED_MAX, readGaps } from '../../../functions/audit/entries/gap-rows.ts';
import { acceptGap } from '../../../functions/audit/gaps/accept-gap.ts';
import { nameOfReceived, receive } from '../../../functions/audit/intake/intake.ts';
import { openLogKeys } from '../../../functions/audit/log/log-keys.ts';
import { readLogHealth } from '../../../functions/audit/read/read-log-health.ts';
import { openHide } from '../../../functions/audit/sidecar/hide.ts';
import type { Value } from '../../../functions/store/rows.ts';
import { LogHoles } from '../../../infra/cli/audit/holes.ts';
import { AUDIT_UNENDED_MS } from '../../../shared/audit/gaps.ts';
import { encodeLeaf } from '../../../shared/audit/leaf.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { deskOf, toldOf } from './erase-world.ts';
import { HiddenLog, ZONE } from './hidden-log.ts';

const EPOCH = '7f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
const UPLOAD = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f';
const reason = 'the storage was restored from a backup';
const operator = { reason, tenant: 'fleet', by: `c1:${'0f'.repeat(32)}`, request: 'r9' };
const keys = await openLogKeys({ AUDIT_KEY: Buffer.alloc(32, 1).toString('base64') });

async function opened() {
  const log = new HiddenLog();
  const rows = new MemoryRows();
  const desk = (at = rows) => ({ ...deskOf(log), rows: at });
  const health = async (at = rows) => {
    await followLog(desk(at));
    const now = () => log.now;
    if (!keys) throw new Error('no keys');
    return (await readLogHealth({ ...keys, rows: at, store: log.store, now, settings: {} }, ZONE)).gaps;
  };
  const verified = () => {
    const holes = new LogHoles(log.year);
    for (const [index, leaf] of log.read().leaves.entries()) holes.see(encodeLeaf(leaf), index);
    return holes.found(log.now);
  };
  /** Delivers one event with number `from` of an outbox that has none before it any more. */
  const deliver = async (from: number) => {
    const rowsOf = [{ to: from, t: log.now, events: [log.event()] }];
    const delivery = { v: 1 as const, producer: `gate/dev/${ZONE}`, epoch: EPOCH, oldest: from, rows: rowsOf };
    const received = await receive(delivery, log.now, openHide(log.newKeys()));
    if (!received) throw new Error('not taken');
    const bytes = new TextEncoder().encode(JSON.stringify(received));
    await log.store.create('intake', nameOfReceived(ZONE, received), bytes);
    await log.commit();
  };
  return { log, rows, desk, health, verified, deliver };
}

describe('C9 gaps of the audit log', () => {
  it('fail health and verification until accepted, and stay visible', async () => {
    const { log, rows, desk, health, verified, deliver } = await opened();
    await deliver(1);
    await deliver(4);
    expect(await health()).toEqual({ open: 1, accepted: 0, behind: 0 });
    expect(verified()).toEqual({ open: [expect.stringContaining('events 2 to 3')], accepted: [] });
    const [gap] = await readGaps(rows, ZONE, log.now);
    expect(gap).toMatchObject({ outbox: `gate/dev/${ZONE}`, epoch: EPOCH, from: 2, to: 3 });
    const accepted = await acceptGap(desk(), { gap: gap?.gap ?? '', ...operator });
    expect(accepted).toMatchObject({ ok: true, value: { from: 2, accepted: {} } });
    // A second time changes nothing.
    expect(await acceptGap(desk(), { gap: gap?.gap ?? '', ...operator })).toMatchObject({ ok: true });
    const told = await toldOf(log, 'gap.accept');
    expect(told).toMatchObject([{ gap: gap?.gap, epoch: EPOCH, from: 2, to: 3, req: 'r9' }]);
    expect(Object.keys(told[0]?.sd ?? {})).toEqual(expect.arrayContaining(['reason', 'subject']));
    expect(await health()).toEqual({ open: 0, accepted: 1, behind: 0 });
    expect(verified()).toEqual({
      open: [],
      accepted: [expect.stringMatching(/events 2 to 3 .*accepted in entry \d+$/)],
    });
    // An index that is built again from the log says the same.
    expect(await health(new MemoryRows())).toEqual({ open: 0, accepted: 1, behind: 0 });
    await deliver(9);
    expect(await health()).toEqual({ open: 1, accepted: 1, behind: 0 });
    expect(verified().open).toHaveLength(1);
  });

  it('accepted twice at once leave an index that can be followed and rebuilt', async () => {
    const { log, rows, desk, health, deliver } = await opened();
    await deliver(2);
    await health();
    const [gap] = await readGaps(rows, ZONE, log.now);
    const accept = () => acceptGap(desk(), { gap: gap?.gap ?? '', ...operator });
    expect(await Promise.all([accept(), accept()])).toMatchObject([{ ok: true }, { ok: true }]);
    await log.commit();
    expect(await toldOf(log, 'gap.accept')).toHaveLength(2);
    for (const index of [rows, new MemoryRows()]) expect(await health(index)).toMatchObject({ open: 0, accepted: 1 });
  });

  it('include uploads without an end after two days', async () => {
    const { log, rows, desk, health, verified } = await opened();
    const report = (type: 'inference.attempt' | 'inference.denied', request: string) => {
      const who = { tenant: 'dev', request, action: 'upload', class: 'batch' as const };
      return desk().report(type === 'inference.denied' ? { ...who, type, reason: 'x' } : { ...who, type });
    };
    const served = UPLOAD.replace('017f', '017e');
    for (const request of [UPLOAD, served])
      expect(await report('inference.attempt', request)).toMatchObject({ ok: true });
    await log.commit();
    expect(await health()).toMatchObject({ open: 0 });
    await report('inference.denied', served);
    await log.commit();
    log.now += AUDIT_UNENDED_MS + 1;
    expect(await health()).toMatchObject({ open: 1, accepted: 0 });
    expect(verified().open).toEqual([expect.stringContaining(`${UPLOAD} has no end`)]);
    const [gap] = await readGaps(rows, ZONE, log.now);
    expect(gap).toMatchObject({ request: UPLOAD });
    await acceptGap(desk(), { gap: gap?.gap ?? '', ...operator });
    await log.commit();
    expect(await health()).toMatchObject({ open: 0, accepted: 1 });
    expect(verified()).toMatchObject({ open: [], accepted: [expect.stringContaining(UPLOAD)] });
  });

  it('are found behind a thousand accepted ones and a thousand works under way', async () => {
    const { log, rows, health, deliver } = await opened();
    const begun = { outbox: 'functions/a', epoch: EPOCH, from: 1, to: 1 };
    const put = (key: string, value: Value) => rows.commit(`gap!${ZONE}`, [{ type: 'put', key, value }]);
    for (let index = 0; index < AUDIT_GAPS_LISTED_MAX; index += 1) {
      const place = `2025-${String(index).padStart(16, '0')}`;
      await put(`lost-${place}`, { ...begun, gap: `2025-${index}`, at: index });
      await put(`accepted-${place}`, { ...begun, at: index });
      const request = UPLOAD.replace(/.{4}$/, index.toString(16).padStart(4, '0'));
      await put(`begun-${request}`, { ...begun, gap: `2026-${index + 50}`, request, at: log.now });
    }
    const unended = UPLOAD.replace('017f', '018f');
    await put(`begun-${unended}`, { ...begun, gap: '2026-7', request: unended, at: 1 });
    await deliver(2);
    expect(await health()).toMatchObject({ open: 2, accepted: AUDIT_GAPS_LISTED_MAX });
    expect(await readGaps(rows, ZONE, log.now)).toContainEqual(expect.objectContaining({ request: unended }));
  });

  it('cannot be accepted where there is none, or by an outbox', async () => {
    const { log, desk, health, deliver } = await opened();
    await deliver(3);
    expect(await acceptGap(desk(), { gap: '2026-99', ...operator })).toMatchObject({
      refusal: { reason: 'gap_unknown' },
    });
    const gap = { gap: `${log.year}-1`, outbox: `gate/dev/${ZONE}`, epoch: EPOCH, from: 1, to: 2 };
    await log.write(log.event({ type: 'gap.accept', ...gap, reason }));
    expect(await health()).toMatchObject({ open: 1, accepted: 0 });
  });
});
