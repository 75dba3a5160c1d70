import { describe, expect, it } from 'vitest';
import {
  advanceExport,
  advanceExports,
  EXPORT_STEP_MS,
  EXPORT_TRIES_MAX,
} from '../../../../functions/audit/export/advance-export.ts';
import {
  EXPORTS_PER_DAY_MAX,
  EXPORTS_STORED_BYTES,
  refusalOf,
} from '../../../../functions/audit/export/export-budget.ts';
import type { ExportContext } from '../../../../functions/audit/export/export-context.ts';
import {
  EXPORT_ROWS_MAX,
  EXPORT_STORED_MS,
  EXPORTS_RUNNING_MAX,
  type ExportRow,
  insertExport,
  listExports,
} from '../../../../functions/audit/export/export-row.ts';
import type { LogStore } from '../../../../functions/audit/log/log-store.ts';
import { MANIFEST_NOTE, type Manifest } from '../../../../shared/audit/bundle/manifest.ts';
import { formatNames } from '../../../../shared/audit/derived/formats.ts';
import { eventId } from '../../../../shared/audit/event-id.ts';
import { EXPORT_ANCHOR_MS } from '../../../../shared/audit/verify/numbers.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { publicText } from '../../../../shared/refusal.ts';
import { MemoryRows } from '../../../fake/rows.ts';
import { ExportedLog, readerOf, ZONE } from './exported-log.ts';

const DAY_MS = 86_400_000;
const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
// biome-ignore lint/suspicious/noExplicitAny: lines of JSON, looked at member by member.
const linesOf = (bytes: Uint8Array | undefined): any[] =>
  text(bytes)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
const manifestOf = (files: ReadonlyMap<string, Uint8Array>): Manifest => JSON.parse(text(files.get('manifest.json')));
const verify = (log: ExportedLog, files: ReadonlyMap<string, Uint8Array>) =>
  verifyBundle(readerOf(files), { now: log.now });

describe('C9 A21 an export of a tenant', () => {
  it('verifies, with all numbers up to the leaf of its own creation', async () => {
    const log = new ExportedLog();
    await log.write('ann', 300);
    await log.write('bob', 400);
    await log.write('ann', 20);
    const files = await log.export('ann');
    const report = await verify(log, files);
    expect(report.findings).toEqual([
      { stage: 'checkpoints', verdict: 'unwitnessed', text: expect.stringContaining('no witness') },
    ]);
    expect(report.facts).toMatchObject({ tenant: 'ann', tseq: [1, 321], entries: 322, disclosed: 321, erased: 0 });
    const entries = linesOf(files.get('entries.ndjson'));
    expect(entries.at(-1).leaf).toMatchObject({ type: 'export.create', tn: 'ann', tseq: 321 });
    expect(text(files.get('entries.ndjson'))).not.toContain('"bob"');
    expect(files.get('proofs/subtrees.bin')?.length).toBeLessThan(1_000);
  });

  it('an export of an hour starts there, discloses the requested fields, ends with itself', async () => {
    const log = new ExportedLog();
    await log.write('ann', 10);
    const from = log.now + 1;
    await log.write('ann', 10);
    const to = log.now + 1;
    await log.write('ann', 10);
    const files = await log.export('ann', { query: { from, to } });
    expect((await verify(log, files)).verdict).toBe('unwitnessed');
    // One more than was asked for: the one before, which shows that number 11 is the first of the hour.
    expect(manifestOf(files).range.tseq).toEqual([10, 31]);
    expect(linesOf(files.get('derived/events.ndjson')).map(({ tseq }) => tseq)).toEqual(
      Array.from({ length: 10 }, (_, at) => 11 + at),
    );
    expect(linesOf(files.get('disclosures.ndjson'))).toHaveLength(10);
    const numbered = await log.export('ann', { query: { tseq_from: 25 }, formats: ['csv'] });
    expect(manifestOf(numbered).range.tseq[0]).toBe(25);
    expect((await verify(log, numbered)).verdict).toBe('unwitnessed');
    expect([...numbered.keys()].filter((path) => path.startsWith('derived/'))).toEqual(['derived/events.csv']);
  });

  it('from a time on finds the entry before it, however far back it lies', async () => {
    const log = new ExportedLog();
    await log.write('ann', 3);
    await log.write('bob', 700);
    const from = log.now + 1;
    await log.write('ann', 2);
    const files = await log.export('ann', { query: { from }, formats: [] });
    expect(manifestOf(files).range).toMatchObject({ tseq: [3, 6], index: [3, expect.any(Number)] });
    expect((await verify(log, files)).verdict).toBe('unwitnessed');
    // A tenant without earlier entries starts at the log's beginning.
    const first = await log.export('eve', { query: { from }, formats: [] });
    expect(manifestOf(first).range).toMatchObject({ tseq: [1, 1], index: [0, expect.any(Number)] });
    expect((await verify(log, first)).verdict).toBe('unwitnessed');
  });

  it('a later year’s export shows where the log before ended', async () => {
    const log = new ExportedLog();
    await log.write('ann', 3);
    await log.write('bob', 3);
    const before = log.now;
    log.now = Date.UTC(2027, 0, 1, 1);
    await log.commit();
    const from = log.now + 1;
    await log.write('ann', 2);
    const files = await log.export('ann', { formats: [] });
    const read = (after?: number) =>
      verifyBundle(readerOf(files), { now: log.now, ...(after !== undefined && { after }) });
    expect(manifestOf(files).range.tseq).toEqual([4, 6]);
    expect(manifestOf(files).links).toEqual({
      before: [{ entry: 'links/2026/before.json', receipt: 'links/2026/before.tlog-proof' }],
      after: [],
    });
    expect(JSON.parse(text(files.get('links/2026/before.json')))).toMatchObject({ tn: 'ann', tseq: 3 });
    // A number known from another source changes nothing.
    for (const after of [undefined, 3]) expect((await read(after)).verdict).toBe('unwitnessed');
    await expect(log.ask('ann', { query: { from: before } })).rejects.toThrow('field_invalid');
    // Within the year nothing of the year before is needed, as soon as there is an entry before it.
    const within = await log.export('ann', { query: { from: log.now }, formats: [] });
    expect((await verify(log, within)).verdict).toBe('unwitnessed');
    expect(from).toBeLessThan(log.now);
  });

  it('C12 shows what its profile shows', async () => {
    const log = new ExportedLog();
    await log.write('ann', 5);
    const bare = await log.export('ann', { redaction: 'auditor-min' });
    expect(bare.has('disclosures.ndjson')).toBe(false);
    expect(text(bare.get('derived/events.csv'))).not.toContain('c1:ann-ann');
    const some = await log.export('ann', { redaction: 'fields:bytes' });
    expect(linesOf(some.get('disclosures.ndjson')).flatMap(({ sd }) => Object.keys(sd))).toEqual(
      Array(5).fill('bytes'),
    );
    for (const files of [bare, some]) expect((await verify(log, files)).verdict).toBe('unwitnessed');
  });

  it('names what an outbox of the tenant lost', async () => {
    const log = new ExportedLog();
    await log.write('ann', 5);
    await log.deliver('ann', [log.event('ann')], 3);
    await log.deliver('ann', [{ ...log.event('ann'), type: 'gap', lost: 7, from: 0, to: 0, tenant: undefined }]);
    await log.commit();
    const report = await verify(log, await log.export('ann'));
    expect(report.verdict).toBe('incomplete');
    expect(report.findings.map((one) => one.text)).toContainEqual(
      expect.stringMatching(/gate\/ann\/eu dropped 7 events$/),
    );
    expect(report.findings.map((one) => one.text)).toContainEqual(
      expect.stringContaining('events 6 to 8 of gate/ann/eu were lost before they reached the log'),
    );
  });

  it('derived rows say where they are from', async () => {
    const log = new ExportedLog();
    await log.write('ann', 3);
    const files = await log.export('ann');
    const [, , entry] = linesOf(files.get('entries.ndjson'));
    const rows = linesOf(files.get('derived/events.ndjson'));
    expect(rows[2]).toMatchObject({ log: 'audit.example/eu/2026', index: entry.index, leaf_hash: expect.any(String) });
    const [event] = linesOf(files.get('derived/ocsf.ndjson')).filter(({ unmapped }) => unmapped.index === entry.index);
    expect(event).toMatchObject({
      ...{ class_uid: 6003, type_uid: 600_399, status_id: 1, api: { operation: 'transcribe' } },
      metadata: { version: '1.8.0', profiles: ['ai_operation', 'record_integrity'] },
      attestation_list: [{ uid: '2', chain_uid: 'audit.example/eu/2026', fingerprint: { value: rows[2].leaf_hash } }],
    });
    const record = linesOf(files.get('derived/fhir.ndjson'))[2];
    expect(record).toMatchObject({
      ...{ resourceType: 'AuditEvent', action: 'E', outcome: '0', type: { code: 'rest' } },
      entity: [{ type: { code: 'XrequestId' }, what: { identifier: { value: 'r-ann' } } }],
    });
    // Each format is of all entries.
    expect(text(files.get('derived/events.csv')).trimEnd().split('\r\n')).toHaveLength(rows.length + 1);
    expect(text(files.get('derived/events.parquet')?.slice(-4))).toBe('PAR1');
  });
});

describe('A21 the job of an export', () => {
  /** A desk whose storage dies after so many calls. */
  const mortal = (log: ExportedLog, calls: number): ExportContext => {
    let left = calls;
    const store = new Proxy(log.desk.store as LogStore, {
      get(target, name: keyof LogStore) {
        const call = target[name] as (...given: unknown[]) => Promise<unknown>;
        if (typeof call !== 'function') return call;
        return async (...given: unknown[]) => {
          left -= 1;
          if (left < 0) throw new Error('died');
          const answer = await call.apply(target, given);
          // The write succeeded, and its answer was lost.
          if (left === 0) throw new Error('died');
          return answer;
        };
      },
    });
    return { ...log.desk, store: store as ExportContext['store'] };
  };

  /** A desk that tells of each call of its storage. */
  const counting = (log: ExportedLog, tell: (name: string) => void): ExportContext => {
    const store = new Proxy(log.desk.store as LogStore, {
      get(target, name: keyof LogStore) {
        const call = target[name] as (...given: unknown[]) => Promise<unknown>;
        if (typeof call !== 'function') return call;
        return (...given: unknown[]) => {
          tell(String(given[1]));
          return call.apply(target, given);
        };
      },
    });
    return { ...log.desk, store: store as ExportContext['store'] };
  };

  it('broken off anywhere, it makes the same bundle', async () => {
    const log = new ExportedLog();
    await log.write('ann', 40);
    const asked = await log.ask('ann');
    await log.commit();
    for (let calls = 1, state = 'anchoring'; state !== 'done'; calls += 1) {
      await advanceExport(mortal(log, (calls % 23) + 1), ZONE, 'ann', asked.id);
      const row = await log.row(asked);
      state = row.state;
      expect(state).not.toBe('failed');
      log.now = Math.max(log.now, row.due);
      // A failure counts until a step is done.
      if (row.tries > 5) await advanceExport(log.desk, ZONE, 'ann', asked.id);
    }
    const files = log.files(asked);
    expect((await verify(log, files)).verdict).toBe('unwitnessed');
    expect(linesOf(files.get('entries.ndjson'))).toHaveLength(42);
  });

  it('two at work on one export do not get in each other’s way', async () => {
    const log = new ExportedLog();
    await log.write('ann', 40);
    const asked = await log.ask('ann');
    await log.commit();
    for (let state = ''; state !== 'done'; state = (await log.row(asked)).state) {
      await Promise.all([1, 2, 3].map(() => advanceExport(log.desk, ZONE, 'ann', asked.id)));
      log.now += 500;
    }
    expect((await verify(log, log.files(asked))).verdict).toBe('unwitnessed');
  });

  it('large ones come in parts, which verify together', async () => {
    const partBytes = 100_000;
    const log = new ExportedLog({ partBytes });
    await log.write('ann', 300);
    await log.write('bob', 600);
    await log.write('ann', 400);
    const files = await log.export('ann');
    const { parts, counts } = manifestOf(files);
    expect(parts.map(({ entries }) => entries)).toEqual([
      'entries.ndjson',
      ...Array.from({ length: parts.length - 1 }, (_, at) => `entries-${at + 2}.ndjson`),
    ]);
    expect(parts.length).toBeGreaterThan(2);
    expect(counts.entries).toBe(702);
    expect((await verify(log, files)).verdict).toBe('unwitnessed');
    const missing = new Map(files);
    missing.delete('entries-2.ndjson');
    expect((await verify(log, missing)).verdict).toBe('invalid');
  });

  it('lets the writing of the logs go on after every few reads and writes', async () => {
    const log = new ExportedLog({ partBytes: 60_000 });
    await log.write('ann', 60);
    await log.write('bob', 1_000);
    await log.write('ann', 60);
    const asked = await log.ask('ann');
    await log.commit();
    let [calls, most, breaths] = [0, 0, 0];
    log.onBreath = () => {
      most = Math.max(most, calls);
      [calls, breaths] = [0, breaths + 1];
    };
    const counted = counting(log, () => {
      calls += 1;
    });
    await log.finish(asked, counted);
    // At each of five bundles, and at each derived file of a part at least.
    expect(breaths).toBeGreaterThanOrEqual(5 + formatNames.length);
    expect(most).toBeLessThanOrEqual(16);
  });

  it('a tick goes round: no zone and no tenant waits until another is done', async () => {
    const log = new ExportedLog({ scanBundles: 1 });
    await log.write('ann', 300);
    await log.write('bob', 300);
    const order: string[] = [];
    const desk = counting(log, (name) => {
      const [, tenant] = /^eu\/(ann|bob)\//.exec(name) ?? [];
      if (tenant !== undefined && order.at(-1) !== tenant) order.push(tenant);
    });
    const asked = [await log.ask('ann', { formats: [] }), await log.ask('bob', { formats: [] })];
    await log.commit();
    await advanceExports(desk);
    for (const one of asked) expect(await log.row(one)).toMatchObject({ state: 'done' });
    expect(order.length).toBeGreaterThan(4);
    expect(order.slice(0, 4)).toEqual(['ann', 'bob', 'ann', 'bob']);
  });

  it('a tick that has not time for all has some for each zone', async () => {
    const log = new ExportedLog();
    await log.write('bob', 1);
    const row = await log.ask('bob');
    const rows = new MemoryRows();
    const place = (zone: string, at: number) => ({ zone, tenant: `t${at}`, id: row.id.replace('eu', zone) });
    const places = [...Array.from({ length: 5 }, (_, at) => place('aa', at)), place('eu', 5)];
    for (const one of places)
      expect(await insertExport(rows, { ...row, ...one, state: 'asked', due: log.now })).toBe(true);
    // Each step takes so long that three of them fill the tick.
    const commit: MemoryRows['commit'] = async (...given) => {
      log.now += 0.4 * EXPORT_STEP_MS;
      return rows.commit(...given);
    };
    const slow = Object.assign(Object.create(rows) as MemoryRows, {
      commit,
      read: rows.read.bind(rows),
      scan: rows.scan.bind(rows),
    });
    await advanceExports({ ...log.desk, zones: ['aa', 'eu'], rows: slow });
    const states = await Promise.all(places.map(({ zone, tenant }) => listExports(rows, zone, tenant)));
    expect(states.flat().map(({ zone, state }) => `${zone} ${state}`)).toEqual([
      ...['aa failed', 'aa failed', 'aa asked', 'aa asked', 'aa asked'],
      'eu failed',
    ]);
  });

  it('fails when the log never takes its leaf or a step keeps failing', async () => {
    const log = new ExportedLog();
    await log.write('ann', 1);
    const asked = await log.ask('ann');
    log.now += EXPORT_ANCHOR_MS + 1;
    await advanceExports(log.desk);
    expect(await log.row(asked)).toMatchObject({ state: 'failed', reason: 'not_logged' });
    const other = await log.ask('ann');
    await log.commit();
    for (let tries = 0; tries < EXPORT_TRIES_MAX; tries += 1) {
      await advanceExport(mortal(log, 1), ZONE, 'ann', other.id);
      log.now = Math.max(log.now, (await log.row(other)).due);
    }
    expect(await log.row(other)).toMatchObject({ state: 'failed', reason: 'step_failed' });
  });

  it('is refused when it cannot be recorded or too many are open', async () => {
    const log = new ExportedLog();
    await log.write('ann', 1);
    for (let count = 0; count < EXPORTS_RUNNING_MAX; count += 1) await log.ask('ann');
    await expect(log.ask('ann')).rejects.toThrow('exports_open');
    await expect(log.ask('bob', { known_size: 10_000 })).rejects.toThrow('field_invalid');
    await expect(log.ask('bob', { query: { from: 2, to: 1 } })).rejects.toThrow('field_invalid');
    await expect(new ExportedLog().ask('bob')).rejects.toThrow('audit_closed');
  });

  it('is refused past the tenant’s daily limit, with a time to retry', async () => {
    const log = new ExportedLog();
    await log.write('ann', 1);
    const first = await log.finish(await log.ask('ann', { formats: [] }));
    for (let count = 1; count < EXPORTS_PER_DAY_MAX; count += 1) {
      const id = `eu-${eventId(first.created + count, crypto.getRandomValues(new Uint8Array(10)))}`;
      await insertExport(log.rows, { ...first, id, created: first.created + count, due: first.due + DAY_MS * 9 });
    }
    const again = new Date(first.created + DAY_MS).toISOString();
    expect(await log.refusal('ann', {})).toEqual({
      reason: 'exports_spent',
      params: { most: `${EXPORTS_PER_DAY_MAX} in 24 hours`, again },
    });
    expect(publicText(await log.refusal('ann', {}))).toContain(`Retry after ${again}.`);
    expect(await log.ask('bob')).toMatchObject({ state: 'anchoring' });
    log.now = first.created + DAY_MS;
    expect(await log.ask('ann')).toMatchObject({ state: 'anchoring' });
  });

  it('is refused while stored exports are too large, until some expire', async () => {
    const log = new ExportedLog();
    await log.write('ann', 1);
    const row = await log.finish(await log.ask('ann', { formats: [] }));
    const files = [...log.files(row)].filter(([path]) => path !== MANIFEST_NOTE);
    expect(row.bytes).toBe(files.reduce((sum, [, { length }]) => sum + length, 0));
    const of = (bytes: number, ended: number): ExportRow => ({ ...row, bytes, ended });
    const now = row.created + DAY_MS;
    const [small, large] = [of(1, row.created), of(EXPORTS_STORED_BYTES - 1, row.created + 5)];
    expect(refusalOf([large], now)).toBeUndefined();
    const again = (at: number) => ({ again: new Date(at + EXPORT_STORED_MS).toISOString() });
    expect(refusalOf([large, small], now)).toMatchObject({ reason: 'exports_spent', params: again(row.created) });
    expect(refusalOf([of(1, row.created + 9), large, of(0, 1)], now)).toMatchObject({ params: again(row.created + 5) });
    expect(refusalOf([large, { ...small, state: 'expired' }], now)).toBeUndefined();
    const unheard = Array.from({ length: 99 }, (): ExportRow => ({ ...row, state: 'failed', reason: 'not_recorded' }));
    expect(refusalOf(unheard, row.created + 1)).toBeUndefined();
  });

  it('fifty concurrent requests make as many exports as allowed and free their slots', async () => {
    const log = new ExportedLog();
    await log.write('ann', 1);
    for (let round = 0; round < 2; round += 1) {
      const asked = await Promise.allSettled(Array.from({ length: 50 }, () => log.ask('ann')));
      const made = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(made).toHaveLength(EXPORTS_RUNNING_MAX);
      for (const one of asked) if (one.status === 'rejected') expect(String(one.reason)).toContain('exports_open');
      for (const row of made) await log.finish(row);
    }
    expect(await log.ask('bob')).toMatchObject({ state: 'anchoring' });
  });

  it('finished exports of others neither delay nor count', async () => {
    const log = new ExportedLog();
    await log.write('bob', 1);
    const kept = await log.ask('ann');
    const over = { created: log.now - 2 * DAY_MS, ended: log.now, due: log.now + 60_000 };
    const done = { ...kept, tenant: 'aaa', state: 'done' as const, ...over };
    for (let at = 0; at <= EXPORT_ROWS_MAX; at += 1) {
      const id = `eu-${eventId(log.now - 1_000 + at, new Uint8Array(10))}`;
      expect(await insertExport(log.rows, { ...done, id })).toBe(true);
    }
    const asked = await log.ask('bob');
    await log.commit();
    for (let rounds = 0; rounds < 5; rounds += 1, log.now += 1_000) await advanceExports(log.desk);
    expect(await log.row(asked)).toMatchObject({ state: 'done' });
    // The newest of many are listed, and every running one counts.
    for (let count = 0; count < EXPORTS_RUNNING_MAX; count += 1) await log.ask('aaa');
    await expect(log.ask('aaa')).rejects.toThrow('exports_open');
    const listed = await listExports(log.rows, ZONE, 'aaa');
    expect(listed.slice(0, 5).map(({ state }) => state)).toEqual([...Array(4).fill('anchoring'), 'done']);
    const created = listed.map(({ id }) => id.slice(3, 16));
    expect(created).toEqual(created.toSorted().toReversed());
  });

  it('its files expire after a week; the log still records the export', async () => {
    const log = new ExportedLog();
    await log.write('ann', 3);
    const row = await log.finish(await log.ask('ann'));
    expect(log.files(row).size).toBeGreaterThan(8);
    await advanceExports(log.desk);
    log.now += EXPORT_STORED_MS + 1;
    await advanceExports(log.desk);
    expect(await log.row(row)).toMatchObject({ state: 'expired' });
    expect(log.files(row).size).toBe(0);
    expect(await listExports(log.rows, ZONE, 'ann')).toHaveLength(1);
    // It is listed for another week, and then nothing of it is kept.
    log.now += EXPORT_STORED_MS + 1;
    await advanceExports(log.desk);
    expect(await listExports(log.rows, ZONE, 'ann')).toEqual([]);
    expect(await log.rows.scan(ZONE, '', '~', 10)).toEqual([]);
  });
});
