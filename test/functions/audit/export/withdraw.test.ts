// Exports of a tenant of which a subject is erased: `ann` is the tenant, `c1:eve` is erased, `c1:bob` is not.
import { beforeEach, describe, expect, it } from 'vitest';
import { eraseSubject, settleErasures } from '../../../../functions/audit/erase/erase.ts';
import type { EraseContext } from '../../../../functions/audit/erase/erase-context.ts';
import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import type { ExportContext } from '../../../../functions/audit/export/export-context.ts';
import { readFile } from '../../../../functions/audit/export/export-files.ts';
import type { ExportRow } from '../../../../functions/audit/export/export-row.ts';
import { withdrawExports } from '../../../../functions/audit/export/withdraw-exports.ts';
import type { LogStore } from '../../../../functions/audit/log/log-store.ts';
import type { Manifest } from '../../../../shared/audit/bundle/manifest.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { faultyStore } from '../../../fake/faulty-log-store.ts';
import { ExportedLog, ZONE } from './exported-log.ts';

const ask = { tenant: 'ann', subject: 'c1:eve', basis: 'gdpr-17' };
let log: ExportedLog;

beforeEach(async () => {
  log = new ExportedLog({ scanBundles: 1 });
  await log.write('ann', 300, (at) => ({ subject: at < 3 ? 'c1:eve' : 'c1:bob' }));
});

/** A process that erases, and has none of the keys that the exporting one has in memory. */
function eraser(store: LogStore = log.store): EraseContext {
  const { report, now, rows } = log.desk;
  return {
    ...{ zone: ZONE, store, keys: log.keys.fresh(), now, report: (draft) => report(ZONE, draft) },
    index: { count: async () => 3, forget: async () => {} },
    withdrawExports: (tenant) => withdrawExports({ rows, store, now }, ZONE, tenant),
    failed: (error) => {
      throw error;
    },
  };
}

async function readBundle(row: ExportRow): Promise<Map<string, Uint8Array>> {
  const manifest = JSON.parse(await textOf(row, 'manifest.json')) as Manifest;
  const paths = [...manifest.files.map(({ path }) => path), 'manifest.json', 'manifest.note'];
  const files = await Promise.all(paths.map((path) => readFile(log.store, row, path)));
  return new Map(paths.map((path, at) => [path, files[at] as Uint8Array]));
}

const textOf = async (row: ExportRow, path: string) =>
  Buffer.from((await readFile(log.store, row, path)) ?? []).toString();

/** Reports whether any stored file of an export discloses the erased subject, encoded or derived. */
const disclosesEve = (): boolean =>
  [...log.store.area('exports')].some(([, { bytes }]) => {
    const text = Buffer.from(bytes).toString('latin1');
    return text.includes('c1:eve') || [...text.matchAll(/"subject":"([\w-]+)"/g)].some(([, one = '']) => isEve(one));
  });
const isEve = (disclosure: string) => Buffer.from(disclosure, 'base64url').toString().includes('c1:eve');

describe('C12 A21 exports after an erasure', () => {
  it('stop being served when they disclose, and stay when they do not', async () => {
    const full = await log.finish(await log.ask('ann'));
    const bare = await log.finish(await log.ask('ann', { redaction: 'auditor-min' }));
    expect([full.state, disclosesEve()]).toEqual(['done', true]);
    expect(await eraseSubject(eraser(), ask)).toMatchObject({ value: { outcome: 'done' } });
    expect(await log.row(full)).toMatchObject({ state: 'expired', reason: 'subject_erased' });
    expect((await log.row(bare)).state).toBe('done');
    expect(await readFile(log.store, full, 'manifest.json')).toBeUndefined();
    expect(disclosesEve()).toBe(false);
    // The export that is made instead says that three entries are erased.
    const again = await log.finish(await log.ask('ann'));
    expect(again).toMatchObject({ state: 'done', erased: 3 });
    expect(disclosesEve()).toBe(false);
  });

  it('begin again when they are in the making, and verify', async () => {
    const asked = await log.ask('ann');
    await log.commit();
    while ((await log.row(asked)).parts === 0) await advanceExport(log.desk, ZONE, 'ann', asked.id);
    expect(disclosesEve()).toBe(true);
    await eraseSubject(eraser(), ask);
    expect(disclosesEve()).toBe(false);
    const row = await log.finish(asked);
    expect(row).toMatchObject({ state: 'done', erased: 3, restarts: 1 });
    const files = await readBundle(row);
    const reader = { list: async () => [...files.keys()], read: async (path: string) => files.get(path) };
    expect((await verifyBundle(reader, { now: log.now })).verdict).toBe('unwitnessed');
    expect(disclosesEve()).toBe(false);
  });

  it('serve nothing of a step that read its keys before', async () => {
    const asked = await log.ask('ann');
    await log.commit();
    let breaths = 0;
    // The second breath comes after the disclosures were read and before they are written.
    const breathe: ExportContext['breathe'] = async () => {
      if ((await log.row(asked)).state === 'collecting') breaths += 1;
      if (breaths === 2) await eraseSubject(eraser(), ask);
    };
    const row = await log.finish(asked, { ...log.desk, breathe });
    expect(row).toMatchObject({ state: 'done', erased: 3 });
    const disclosed = [...(await readBundle(row)).values()].map((bytes) => Buffer.from(bytes).toString('latin1'));
    expect(disclosed.some((text) => text.includes('c1:eve'))).toBe(false);
    log.now += 30 * 86_400_000;
    while (await advanceExport(log.desk, ZONE, 'ann', asked.id));
    expect(log.store.area('exports').size).toBe(0);
  });

  it('are gone although the erasure breaks off at any call', async () => {
    const begin = async () => {
      log = new ExportedLog({ scanBundles: 1 });
      await log.write('ann', 3, () => ({ subject: 'c1:eve' }));
      await log.finish(await log.ask('ann', { formats: ['csv'] }));
    };
    await begin();
    const whole = faultyStore(log.store, -1, 'failed');
    await eraseSubject(eraser(whole), ask);
    const calls = [...whole.calls.keys()].filter((at) => /^remove|^list exports/.test(whole.calls[at] ?? ''));
    expect(calls.length).toBeGreaterThan(5);
    for (const broken of calls) {
      await begin();
      await eraseSubject(eraser(faultyStore(log.store, broken, 'failed')), ask).catch(() => {});
      await settleErasures(eraser());
      expect(disclosesEve(), whole.calls[broken]).toBe(false);
    }
  });
});
