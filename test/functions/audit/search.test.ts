import { describe, expect, it } from 'vitest';
import { dayOf, keyOf, partitionOf, readKey } from '../../../functions/audit/entries/entry-rows.ts';
import { CURSOR, cursorPartition, followLog, indexedUpTo } from '../../../functions/audit/entries/follow-log.ts';
import { subjectIndex } from '../../../functions/audit/entries/subject-rows.ts';
import { eraseSubject } from '../../../functions/audit/erase/erase.ts';
import { setHold } from '../../../functions/audit/erase/hold.ts';
import { SEARCH_ENTRIES_READ_MAX, type SearchQuery, searchLog } from '../../../functions/audit/search/search.ts';
import { TRANSACTION_ROWS_MAX } from '../../../functions/limits.ts';
import type { Change } from '../../../functions/store/rows.ts';
import { checkDisclosure } from '../../../shared/audit/commitment.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { deskOf } from './erase-world.ts';
import { HiddenLog, SUMMER, ZONE } from './hidden-log.ts';
import { Failed } from './scheduler.ts';

const DAY = 86_400_000;
const ann = { subject: 'c1:ann', model: 'reference-en' };
const ben = { subject: 'c1:ben', model: 'reference-de' };

/** Rows whose writes are known, and of which one may fail. */
class SeenRows extends MemoryRows {
  readonly written = new Set<string>();
  commits = 0;
  broken = -1;

  override async commit(partition: string, changes: readonly Change[]): Promise<boolean> {
    this.commits += 1;
    if (this.commits - 1 === this.broken) throw new Failed('commit');
    const done = await super.commit(partition, changes);
    for (const { type, key } of done ? changes : []) {
      if (type === 'remove') this.written.delete(`${partition} ${key}`);
      else this.written.add(`${partition} ${key}`);
    }
    if (this.commits - 1 === this.broken + 0.5) throw new Failed('commit');
    return done;
  }
}

/** Removes the cursor, as an operator does to have the index built again. */
const rebuild = (rows: SeenRows) => rows.commit(cursorPartition(ZONE), [{ type: 'remove', key: CURSOR }]);

async function searched() {
  const log = new HiddenLog();
  const rows = new SeenRows();
  const desk = () => ({ zone: ZONE, store: log.store, rows, keys: log.newKeys() });
  const find = async (asked: Partial<SearchQuery>) => searchLog(desk(), { tenant: 'dev', ...asked });
  const requests = async (asked: Partial<SearchQuery>) =>
    (await find(asked)).hits.map(({ entry }) => readLeaf(new TextEncoder().encode(entry))?.req);
  await log.write(
    log.event({ ...ann, request: 'r1' }),
    log.event({ ...ben, request: 'r2' }),
    log.event({ ...ann, request: 'r3', tenant: 'other' }),
  );
  log.now += DAY;
  await log.write(log.event({ ...ann, request: 'r4', model: 'reference-de' }), log.event({ ...ben, request: 'r1' }));
  return { log, rows, desk, find, requests };
}

describe('C12 search', () => {
  it('discloses entries by their place, those of the tenant only', async () => {
    const { log, find } = await searched();
    const places = { year: log.year, indexes: [0, 1, 2, 3, 99], disclose: true };
    const { hits } = await find(places);
    const said = hits.map(({ entry, disclosed = [] }) => {
      const sd = readLeaf(new TextEncoder().encode(entry))?.sd ?? {};
      return disclosed.map((one) => checkDisclosure(one, sd)?.name).includes('subject');
    });
    expect([hits.map(({ index }) => index), said]).toEqual([
      [1, 2],
      [true, true],
    ]);
    expect((await find({ ...places, disclose: false })).hits[0]).not.toHaveProperty('disclosed');
    await eraseSubject(deskOf(log), { tenant: 'dev', subject: 'c1:ann', basis: 'gdpr-17' });
    expect((await find(places)).hits).toMatchObject([{ index: 1, erased: true }, { index: 2 }]);
  });

  it('finds entries of one tenant by request, subject, model and day, or combinations', async () => {
    const { log, desk, requests } = await searched();
    expect(await requests({})).toEqual([]);
    expect(await followLog(desk())).toBe(6);
    expect(await requests({})).toEqual(['r1', 'r2', 'r4', 'r1']);
    expect(await requests({ request: 'r1' })).toEqual(['r1', 'r1']);
    expect(await requests({ subjects: ['c1:ann'] })).toEqual(['r1', 'r4']);
    expect(await requests({ model: 'reference-de' })).toEqual(['r2', 'r4', 'r1']);
    expect(await requests({ day: '20260602' })).toEqual(['r4', 'r1']);
    expect(await requests({ subjects: ['c1:ann'], model: 'reference-de', day: '20260602' })).toEqual(['r4']);
    expect(await requests({ subjects: ['c1:ann'], request: 'r2' })).toEqual([]);
    expect(await requests({ tenant: 'other' })).toEqual(['r3']);
    expect(await requests({ tenant: 'other', request: 'r1' })).toEqual([]);
    expect(await requests({ subjects: ['c1:nobody'] })).toEqual([]);
    // A search finds reads of the record together with its entries.
    await log.write(log.event({ ...ann, type: 'access.audit', request: 'r9', action: 'search', count: 1, since: 1 }));
    await followLog(desk());
    expect(await requests({ subjects: ['c1:ann'] })).toEqual(['r1', 'r4', 'r9']);
    // A stored index row that does not match the query remains.
    expect(await requests({ model: 'reference-de' })).toHaveLength(3);
  });

  it('finds those of a type among others, in as many answers as it takes', async () => {
    const { log, desk, find } = await searched();
    const many = SEARCH_ENTRIES_READ_MAX + 20;
    for (let at = 0; at < many; at += 110)
      await log.write(...Array.from({ length: 110 }, (_, one) => log.event({ ...ann, request: `m${at + one}` })));
    await log.write({ ...log.event({ ...ben, request: 'last' }), type: 'inference.denied', reason: 'pool_busy' });
    while ((await followLog(desk())) > 0);
    const types = async (after?: string) => {
      const { hits, next } = await find({ type: 'inference.denied', ...(after !== undefined && { after }) });
      return { found: hits.map(({ entry }) => readLeaf(new TextEncoder().encode(entry))?.req), next };
    };
    const first = await types();
    expect(first.found).toEqual([]);
    expect(await types(first.next)).toMatchObject({ found: ['last'] });
    expect((await find({ type: 'inference.denied', request: 'last' })).hits).toHaveLength(1);
    expect((await find({ type: 'inference.denied', request: 'm1' })).hits).toEqual([]);
  });

  it('pages over all years, and reports how far the index reaches', async () => {
    const { log, desk, requests, find } = await searched();
    // Storage says as well that a year has passed without a log.
    log.store.clock = () => log.now;
    for (const year of [2027, 2029]) {
      log.now = Date.UTC(year, 2, 1);
      await log.write(log.event({ ...ann, request: `r${year}` }));
    }
    expect((await find({})).indexed).toBeUndefined();
    for (let rounds = 0; rounds < 8; rounds += 1) await followLog(desk());
    const size = log.read().entries.length;
    expect((await find({})).indexed).toEqual({ year: 2029, index: size });
    expect(await requests({ subjects: ['c1:ann'] })).toEqual(['r1', 'r4', 'r2027', 'r2029']);
    for (const asked of [{}, { subjects: ['c1:ann', 'c1:other'] }, { day: '20260602' }]) {
      const whole = await find(asked);
      const pages = [];
      for (let after: string | undefined; ; ) {
        const page = await find({ ...asked, limit: 1, after });
        pages.push(...page.hits);
        after = page.next;
        if (after === undefined) break;
      }
      expect(pages).toEqual(whole.hits);
    }
  });

  it('is built in bounded parts, and from zero with the same result', async () => {
    const { log, rows, desk } = await searched();
    const events = Array.from({ length: 600 }, (_, at) => log.event({ ...ann, request: `many${at}` }));
    await log.write(...events);
    expect(await followLog(desk(), 1)).toBe(256);
    expect(await indexedUpTo(desk())).toEqual({ year: 2026, index: 256 });
    while ((await followLog(desk())) > 0);
    const before = [...rows.written].sort();
    for (const row of before) {
      const [partition = '', key = ''] = row.split(' ');
      if (!partition.startsWith('cursor')) await rows.commit(partition, [{ type: 'remove', key }]);
    }
    await rebuild(rows);
    while ((await followLog(desk())) > 0);
    expect([...rows.written].sort()).toEqual(before);
  });

  it('a write that fails, at any place: the next round does it', async () => {
    const whole = await searched();
    await followLog(whole.desk());
    for (let half = 0; half < whole.rows.commits * 2; half += 1) {
      const { rows, desk } = await searched();
      // Whole numbers: not written. Halves: written all the same.
      rows.broken = half / 2 - (half % 2 ? 1 : 0);
      await followLog(desk()).catch(() => {});
      rows.broken = -1;
      while ((await followLog(desk())) > 0);
      const kinds = (written: Set<string>) => [...written].map((row) => row.replace(/!\S+/, '')).sort();
      expect(kinds(rows.written), `${half}`).toEqual(kinds(whole.rows.written));
    }
  });

  it('rows contain neither subjects nor claims', async () => {
    const { rows, desk } = await searched();
    await followLog(desk());
    const all = [...rows.written].join('\n');
    for (const told of ['c1:', 'reference']) expect(all).not.toContain(told);
    // By chance a digest has two or three letters of anything in it.
    const words = all.split(/[^A-Za-z0-9_-]/);
    for (const told of ['ann', 'r1']) expect(words).not.toContain(told);
  });
});

describe('C12 an index that is wrong', () => {
  it('yields no hit for a row that names another entry', async () => {
    const { rows, desk, requests } = await searched();
    await followLog(desk());
    const lies: [string, string][] = [
      [partitionOf('request', ZONE, 'dev', 'r9'), keyOf({ year: 2026, index: 1 })],
      // Another tenant's entry.
      [partitionOf('request', ZONE, 'dev', 'r3'), keyOf({ year: 2026, index: 3 })],
      [partitionOf('model', ZONE, 'dev', 'reference-fr'), keyOf({ year: 2026, index: 1 })],
      [partitionOf('day', ZONE, 'dev', ''), keyOf({ year: 2026, index: 1 }, '20250101')],
      // An index row without an entry in the log.
      [partitionOf('request', ZONE, 'dev', 'r9'), keyOf({ year: 2026, index: 4_000 })],
    ];
    for (const [partition, key] of lies) await rows.commit(partition, [{ type: 'put', key, value: {} }]);
    expect(await requests({ request: 'r9' })).toEqual([]);
    expect(await requests({ request: 'r3' })).toEqual([]);
    expect(await requests({ model: 'reference-fr' })).toEqual([]);
    expect(await requests({ day: '20250101' })).toEqual([]);
    expect(new Set(await requests({}))).toEqual(new Set(['r1', 'r2', 'r4']));
  });

  it('only hidden fields tell the subject of an entry', async () => {
    const { rows, desk, requests } = await searched();
    await followLog(desk());
    const [row = ''] = [...rows.written].filter((one) => one.startsWith('subject!eu!dev'));
    for (const index of [1, 2, 4, 5]) {
      await rows.commit(row.split(' ')[0] ?? '', [{ type: 'put', key: keyOf({ year: 2026, index }), value: {} }]);
    }
    expect(await requests({ subjects: ['c1:ann'] })).toEqual(['r1', 'r4']);
    expect(await requests({ subjects: ['c1:ben'] })).toEqual(['r2', 'r1']);
  });

  it('an entry without its row is not found, until the index is built again', async () => {
    const { rows, desk, requests } = await searched();
    await followLog(desk());
    await rows.commit(partitionOf('request', ZONE, 'dev', 'r2'), [
      { type: 'remove', key: keyOf({ year: 2026, index: 2 }) },
    ]);
    expect(await requests({ request: 'r2' })).toEqual([]);
    await rebuild(rows);
    await followLog(desk());
    expect(await requests({ request: 'r2' })).toEqual(['r2']);
  });
});

describe('C12 C9 erasing and finding', () => {
  it('forgets the rows of a subject, and never makes them again', async () => {
    const { log, rows, desk, requests } = await searched();
    await followLog(desk());
    const of = (kind: string) => [...rows.written].filter((row) => row.startsWith(`${kind}!eu!dev`)).length;
    expect([of('subject'), of('request')]).toEqual([4, 4]);
    const erasing = { ...deskOf(log), index: subjectIndex(rows, ZONE) };
    const done = await eraseSubject(erasing, { tenant: 'dev', subject: 'c1:ann', basis: 'gdpr-17' });
    expect(done).toMatchObject({ value: { outcome: 'done', count: 2 } });
    expect(of('subject')).toBe(2);
    expect(await requests({ subjects: ['c1:ann'] })).toEqual([]);
    await rebuild(rows);
    while ((await followLog(desk())) > 0);
    expect(of('subject')).toBe(2);
    // That there was a request is no secret of the subject.
    expect(await requests({ request: 'r4' })).toEqual(['r4']);
  });

  it('a held record can still be found by its subject', async () => {
    const { log, rows, desk, requests } = await searched();
    await followLog(desk());
    const erasing = { ...deskOf(log), index: subjectIndex(rows, ZONE) };
    await setHold(erasing, { id: crypto.randomUUID(), tenant: 'dev', subject: 'c1:ann', reason: 'case 7' });
    await eraseSubject(erasing, { tenant: 'dev', subject: 'c1:ann', basis: 'gdpr-17' });
    expect(await requests({ subjects: ['c1:ann'] })).toEqual(['r1', 'r4']);
  });

  it('many rows are forgotten, too', async () => {
    const rows = new SeenRows();
    const partition = partitionOf('subject', ZONE, 'dev', 'sid');
    const most = TRANSACTION_ROWS_MAX;
    for (let index = 0; index < 3 * most; index += most) {
      const keys = Array.from({ length: most }, (_, at) => keyOf({ year: 2026, index: index + at }));
      await rows.commit(
        partition,
        keys.map((key) => ({ type: 'put', key, value: {} })),
      );
    }
    const index = subjectIndex(rows, ZONE);
    expect(await index.count('dev', 'sid')).toBe(3 * most);
    await index.forget('dev', 'sid');
    expect(rows.written.size).toBe(0);
  });
});

describe('C12 keys of the index', () => {
  it('are in the order of the log, and safe for whatever a leaf says', () => {
    expect(keyOf({ year: 2026, index: 9 }) < keyOf({ year: 2026, index: 10 })).toBe(true);
    expect(readKey(keyOf({ year: 2026, index: 9 }, '20260601'))).toEqual({ year: 2026, index: 9 });
    expect(readKey('x')).toBeUndefined();
    for (const tenant of ['@anonymous', 'a/b', 'a#b', 'Ä?', 'x'.repeat(100)]) {
      expect(partitionOf('day', ZONE, tenant, '')).toMatch(/^day!eu!@[\w-]{22}$/);
    }
    expect(dayOf({ t: { origin: SUMMER, edge: 0, seq: 0 } })).toBe('20260601');
    for (const origin of [Number.NaN, 1e20, -1e15]) {
      expect(dayOf({ t: { origin, edge: 0, seq: 0 } }) ?? '').toMatch(/^$/);
    }
  });
});
