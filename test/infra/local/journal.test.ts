// The journal beside the emulator's databases, on the real LokiJS.
import { appendFileSync, cpSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Change, type Database, Journal, replay } from '../../../infra/local/part/journal.ts';
import { folderForTest } from './folder.ts';

type Row = { $loki: number; readonly key: string; readonly n: number };
interface Rows {
  readonly data: readonly Row[];
  insert(row: Omit<Row, '$loki'>): void;
  update(row: Row): void;
  remove(row: Row): void;
  findOne(query: object): Row | null;
  findAndRemove(query: object): void;
}
type Loki = Database & { getCollection(name: string): Rows };
const require = createRequire(import.meta.url);
const LokiDatabase = require('lokijs') as new (file: string, options: object) => Loki;

/** Opens a database as the emulator does: it loads, adds what is missing, and saves. */
async function open(folder: string): Promise<{ db: Loki; journal: Journal }> {
  const db = new LokiDatabase(path.join(folder, 'table.json'), { persistenceMethod: 'fs', autosave: true });
  const journal = new Journal(db);
  const run = (act: (done: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => act((error) => (error ? reject(error) : resolve())));
  if (readdirSync(folder).includes('table.json')) await run((done) => db.loadDatabase({}, done));
  if (!db.getCollection('rows')) db.addCollection('rows', { indices: ['key'] });
  await run((done) => db.saveDatabase(done));
  return { db, journal };
}

const shown = (db: Loki, name: string) => db.getCollection(name)?.data.map(({ $loki, key, n }) => ({ $loki, key, n }));

/** A copy of the files on disk at this moment, as `kill -9` leaves them. */
function killedCopy(folder: string): string {
  const copy = folderForTest();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

describe('C11: journal of the storage emulator', () => {
  it('has each flushed change after a kill', async () => {
    const folder = folderForTest();
    const { db, journal } = await open(folder);
    const rows = db.getCollection('rows');
    for (let n = 0; n < 50; n += 1) rows.insert({ key: `k${n % 10}`, n });
    rows.update({ ...(rows.findOne({ n: 7 }) as Row), n: 700 });
    rows.remove(rows.findOne({ n: 8 }) as Row);
    rows.findAndRemove({ key: 'k3' });
    db.addCollection('more', { indices: ['key'] });
    db.getCollection('more').insert({ key: 'a', n: 1 });
    db.addCollection('gone');
    db.removeCollection('gone');
    journal.flush();
    const killed = killedCopy(folder);
    const again = await open(killed);
    expect(shown(again.db, 'rows')).toEqual(shown(db, 'rows'));
    expect(shown(again.db, 'more')).toEqual([{ $loki: 1, key: 'a', n: 1 }]);
    expect(again.db.getCollection('rows').findOne({ key: 'k7', n: 700 })).toMatchObject({ n: 700 });
    expect(again.db.getCollection('gone')).toBeNull();
    // Numbers go on after the last one, and an index made again finds what is added.
    again.db.getCollection('rows').insert({ key: 'new', n: 1000 });
    expect(again.db.getCollection('rows').findOne({ key: 'new' })).toMatchObject({ $loki: 51 });
    // The snapshot of the start has replaced the journal.
    expect(readdirSync(killed).filter((name) => name.includes('journal'))).toEqual([]);
  });

  it('starts after a kill in the middle of a line', async () => {
    const folder = folderForTest();
    const { db, journal } = await open(folder);
    db.getCollection('rows').insert({ key: 'a', n: 1 });
    journal.flush();
    const killed = killedCopy(folder);
    const [name = ''] = readdirSync(killed).filter((one) => one.includes('journal'));
    appendFileSync(path.join(killed, name), '["put","rows",{"$loki":2,"ke');
    expect(shown((await open(killed)).db, 'rows')).toEqual([{ $loki: 1, key: 'a', n: 1 }]);
  });

  it('replays a journal that the snapshot already holds to the same rows', () => {
    const put = ($loki: number, n: number): Change => ['put', 'rows', { $loki, n } as Row];
    const empty = { name: 'rows', data: [], maxId: 0 };
    const changes: Change[] = [['add', empty], put(1, 1), put(2, 2), ['remove', 'rows', 2], put(1, 3), put(3, 1)];
    const once = replay({ collections: [] }, changes);
    expect(once.collections[0]?.data).toEqual([
      { $loki: 1, n: 3 },
      { $loki: 3, n: 1 },
    ]);
    expect(replay(once, changes)).toEqual(once);
    const dropped: Change[] = [...changes, ['drop', 'rows']];
    expect(replay(replay(once, dropped), dropped)).toEqual({ collections: [] });
  });
});
