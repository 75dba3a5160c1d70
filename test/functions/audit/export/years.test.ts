// Exports of logs whose year has ended, and what ties a log to those before and after it.
import { beforeAll, describe, expect, it } from 'vitest';
import { advanceExport } from '../../../../functions/audit/export/advance-export.ts';
import { listYears } from '../../../../functions/audit/read/list-years.ts';
import type { Manifest } from '../../../../shared/audit/bundle/manifest.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { ExportedLog, readerOf, ZONE } from './exported-log.ts';

type Files = ReadonlyMap<string, Uint8Array>;
const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
const manifestOf = (files: Files): Manifest => JSON.parse(text(files.get('manifest.json')));
const linesOf = (files: Files): { index: number; leaf: { type: string; tseq?: number } }[] =>
  text(files.get('entries.ndjson'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** ann: 1 to 3 and, in 2029, 4; bob: 1 to 300 in 2026; nothing but the log's own in 2027; no log of 2028. */
let log: ExportedLog;
beforeAll(async () => {
  log = new ExportedLog();
  // Storage says as well that 2028 has passed, without a log.
  log.store.clock = () => log.now;
  await log.write('ann', 2);
  await log.write('bob', 300);
  await log.write('ann', 1);
  log.now = Date.UTC(2027, 5, 1);
  await log.commit();
  log.now = Date.UTC(2029, 5, 1);
  await log.commit();
  await log.write('ann', 1);
});

const verify = (files: Files, now = log.now) => verifyBundle(readerOf(files), { now });
const exported = (tenant: string, year: number, more = {}) =>
  log.export(tenant, { formats: ['csv'], query: { year, ...more } });

describe('C9 A21 an export of a year that has ended', () => {
  it('holds all of the tenant’s entries of it, and shows which one came next', async () => {
    const files = await exported('ann', 2026);
    const { range, anchor, links, query } = manifestOf(files);
    expect({ tseq: range.tseq, query, log: anchor.log }).toEqual({
      ...{ tseq: [1, 3], query: { year: 2026 }, log: 'audit.example/eu/2029' },
    });
    const entries = linesOf(files);
    expect([entries[0]?.leaf.type, entries.at(-1)?.leaf.type]).toEqual(['shard.open', 'shard.close']);
    expect(entries.flatMap(({ leaf }) => leaf.tseq ?? [])).toEqual([1, 2, 3]);
    expect(links?.after.map(({ entry }) => entry)).toEqual([
      'links/2027/opening.json',
      'links/2029/opening.json',
      'links/2029/after.json',
      'links/2029/export.json',
    ]);
    expect(links?.before).toEqual([]);
    const report = await verify(files);
    expect(report.findings.map(({ stage, verdict }) => `${stage} ${verdict}`)).toEqual([
      'checkpoints unwitnessed',
      'links unwitnessed',
    ]);
    expect(report.facts).toMatchObject({ tseq: [1, 3], disclosed: 3, purposeShown: false });
  });

  it('a year without records of the tenant is shown as empty', async () => {
    const files = await exported('ann', 2027);
    expect(manifestOf(files).range.tseq).toEqual([4, 3]);
    expect(linesOf(files).map(({ leaf }) => leaf.type)).toEqual(['shard.open', 'shard.close']);
    expect(JSON.parse(text(files.get('links/2026/before.json')))).toMatchObject({ tn: 'ann', tseq: 3 });
    expect((await verify(files)).verdict).toBe('unwitnessed');
    // Number 1 follows when the tenant has no earlier entries.
    const none = await exported('eve', 2027);
    expect(manifestOf(none)).toMatchObject({ range: { tseq: [1, 0] }, links: { before: [] } });
    expect((await verify(none)).verdict).toBe('unwitnessed');
  });

  it('the newest log’s export links back over an empty year to the last record', async () => {
    const files = await exported('ann', 2029);
    expect(manifestOf(files).links?.before.map(({ entry }) => entry)).toEqual([
      'links/2027/opening.json',
      'links/2026/before.json',
    ]);
    expect(manifestOf(files).anchor.log).toBeUndefined();
    expect((await verify(files)).verdict).toBe('unwitnessed');
    // The same without a year, for a tenant whose numbers begin here.
    expect((await verify(await log.export('ann', { formats: [] }))).verdict).toBe('unwitnessed');
    const fresh = await log.export('fay', { formats: [] });
    expect(manifestOf(fresh).links).toBeUndefined();
    expect((await verify(fresh)).verdict).toBe('unwitnessed');
  });

  it('from a time or a number on, also where there is none after it', async () => {
    const from = Date.UTC(2026, 5, 1);
    for (const query of [{ from }, { from: Date.UTC(2026, 11, 1) }, { tseq_from: 2 }, { tseq_from: 4 }]) {
      const files = await exported('ann', 2026, query);
      expect((await verify(files)).verdict, JSON.stringify(query)).toBe('unwitnessed');
    }
    // Nothing of the tenant is before it in that year's log: the one of an earlier year shows where it begins.
    const first = await exported('ann', 2029, { from: Date.UTC(2029, 0, 1) });
    expect([manifestOf(first).links?.before.length, (await verify(first)).verdict]).toEqual([2, 'unwitnessed']);
    const [only] = linesOf(await exported('ann', 2026, { tseq_from: 4 }));
    expect(only?.leaf.type).toBe('shard.close');
    expect(linesOf(await exported('ann', 2026, { from: Date.UTC(2026, 11, 1) }))[0]?.leaf.tseq).toBe(3);
  });

  it('is refused for a log that does not exist, and for times outside it', async () => {
    const rule = async (query: object) => {
      const refused = await log.refusal('ann', { query });
      return `${refused.params?.field}: ${refused.params?.rule}`;
    };
    for (const year of [2025, 2028, 2030]) expect(await rule({ year })).toBe(`year: there is no log of ${year} in eu`);
    expect(await rule({ year: 2027, from: Date.UTC(2026, 11, 31) })).toBe(
      'from: must not be before 2027: what came before is in another log, audit.example/eu/2026',
    );
    expect(await rule({ year: 2027, from: Date.UTC(2028, 0, 1) })).toBe('from: must be in 2027, whose log has ended');
    expect(await rule({ tseq_from: 1_000 })).toMatch(/^tseq_from: must not be after \d+, the next number/);
  });

  it('waits for witnesses of both logs, and is witnessed only if both are', async () => {
    const story = new ExportedLog({ witnessed: true });
    await story.write('ann', 5);
    story.now = Date.UTC(2027, 0, 1, 1);
    await story.commit();
    const asked = await story.ask('ann', { formats: [], query: { year: 2026 } });
    await story.commit();
    await story.witness();
    await advanceExport(story.desk, ZONE, 'ann', asked.id);
    expect(await story.row(asked)).toMatchObject({ state: 'anchoring' });
    await story.witness(2027);
    const files = story.files(await story.finish(asked));
    expect(await verify(files, story.now)).toMatchObject({ verdict: 'witnessed', findings: [] });
    // No witness has seen the newest log yet.
    const again = await story.ask('ann', { formats: [], query: { year: 2026 } });
    const report = await verify(story.files(await story.finish(again)), story.now + 60_000);
    expect(report.findings).toMatchObject([{ stage: 'links', verdict: 'unwitnessed' }]);
  });

  it('large ones look for what ties them step by step', async () => {
    const story = new ExportedLog({ scanBundles: 1 });
    await story.write('ann', 1);
    await story.write('bob', 600);
    story.now = Date.UTC(2027, 0, 1, 1);
    await story.commit();
    await story.write('bob', 600);
    await story.write('ann', 1);
    for (const year of [2026, 2027]) {
      const files = await story.export('ann', { formats: [], query: { year } });
      expect((await verify(files, story.now)).verdict, `${year}`).toBe('unwitnessed');
    }
  });
});

describe('C9 A21 an export requested as a year ends', () => {
  const asUsual = async (query: object) => {
    const story = new ExportedLog();
    story.now = Date.UTC(2027, 0, 1) - 30_000;
    await story.write('ann', 5);
    const asked = await story.ask('ann', { formats: [], query });
    story.now = Date.UTC(2027, 0, 1);
    return { story, row: await story.finish(asked) };
  };

  it('is of the log that took it, or of the year that it names', async () => {
    const newest = await asUsual({});
    expect(manifestOf(newest.story.files(newest.row))).toMatchObject({ log: { year: 2027 }, range: { tseq: [6, 6] } });
    const named = await asUsual({ year: 2026 });
    expect(manifestOf(named.story.files(named.row))).toMatchObject({ log: { year: 2026 }, range: { tseq: [1, 5] } });
    for (const { story, row } of [newest, named])
      expect((await verify(story.files(row), story.now)).verdict).toBe('unwitnessed');
  });

  it('fails with year_ended when its time range lies in the ended year', async () => {
    expect((await asUsual({ from: Date.UTC(2026, 5, 1) })).row).toMatchObject({
      state: 'failed',
      reason: 'year_ended',
    });
  });
});

it('C9 the logs of a zone are listed with their sizes, the newest first', async () => {
  const years = await listYears(log.store, ZONE);
  const sizes = new Map(
    years.map(({ year }) => [
      year,
      Number(text(log.store.area('state').get(`eu/${year}/checkpoint`)?.bytes).split('\n')[1]),
    ]),
  );
  expect(years.map(({ year, first, closed }) => [year, first, closed])).toEqual([
    [2029, 1, false],
    [2027, 1, true],
    [2026, 3, true],
  ]);
  for (const { year, size } of years) expect(size, `${year}`).toBe(sizes.get(year));
  expect(await listYears(new ExportedLog().store, ZONE)).toEqual([]);
});
