// Append-only journal beside a LokiJS database. LokiJS keeps its rows in memory and writes all of them now
// and then; the journal has each change since. A server flushes it before it answers, so `kill -9` loses no
// acknowledged write.
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';

type Row = { readonly $loki: number };

export interface StoredCollection {
  readonly name: string;
  data: Row[];
  maxId: number;
}
export interface Snapshot {
  collections: StoredCollection[];
}

export type Change =
  | readonly ['add', StoredCollection]
  | readonly ['drop', string]
  | readonly ['put', string, Row]
  | readonly ['remove', string, number];

/** Applies changes to a snapshot. Changes that the snapshot already holds leave it as it is. Pure. */
export function replay({ collections, ...rest }: Snapshot, changes: Iterable<Change>): Snapshot {
  const found = new Map(
    collections.map((one) => [one.name, { one, rows: new Map(one.data.map((row) => [row.$loki, row])) }]),
  );
  for (const [kind, where, what] of changes) {
    if (kind === 'add') {
      if (!found.has(where.name)) found.set(where.name, { one: where, rows: new Map() });
    } else if (kind === 'drop') found.delete(where);
    else if (kind === 'remove') found.get(where)?.rows.delete(what);
    else found.get(where)?.rows.set(what.$loki, what);
  }
  const filled = [...found.values()].map(({ one, rows }) => {
    const data = [...rows.values()].sort((a, b) => a.$loki - b.$loki);
    return { ...one, data, maxId: Math.max(one.maxId, data.at(-1)?.$loki ?? 0) };
  });
  return { ...rest, collections: filled };
}

/** Reads the changes of a journal. A last line that a crash cut off was never acknowledged. */
export const readChanges = (text: string): Change[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Change);

/** The members of LokiJS that the journal uses. */
interface Collection extends StoredCollection {
  on(event: 'insert' | 'update', listener: (rows: Row | readonly Row[]) => void): void;
  on(event: 'delete', listener: (row: Row) => void): void;
  ensureAllIndexes(force: boolean): void;
}
type Done = (error?: Error | null) => void;
export interface Database {
  readonly filename: string;
  readonly collections: readonly Collection[];
  persistenceAdapter: {
    loadDatabase(name: string, done: (loaded: Snapshot | Error | null) => void): void;
    saveDatabase(name: string, text: string, done: Done): void;
  };
  autosaveDisable(): void;
  serializeReplacer(key: string, value: unknown): unknown;
  saveDatabase(done?: Done): void;
  loadDatabase(options: object, done: Done): void;
  addCollection(name: string, options?: object): Collection;
  removeCollection(name: string): void;
}

/** Journal size from which on a snapshot is written, in bytes: a start replays it in a tenth of a second. */
const SNAPSHOT_BYTES = 4 * 2 ** 20;

export class Journal {
  readonly #db: Database;
  #pending: string[] = [];
  /** Bytes of a write that the disk took in part. */
  #rest = Buffer.alloc(0);
  #file: number | undefined;
  #number: number;
  #bytes = 0;
  #snapshotAt = SNAPSHOT_BYTES;

  constructor(db: Database) {
    this.#db = db;
    this.#number = Math.max(0, ...this.#numbers()) + 1;
    db.autosaveDisable();
    db.persistenceAdapter = {
      loadDatabase: (_, done) => done(this.#load()),
      saveDatabase: (_, text, done) => void this.#save(text).then(() => done(), done),
    };
    this.#hook();
  }

  /** Hands all changes to the operating system. Throws where the disk is full, and keeps them for the next call. */
  flush(): void {
    if (this.#rest.length === 0) this.#rest = Buffer.from(this.#pending.splice(0).join(''));
    while (this.#rest.length > 0) {
      this.#file ??= openSync(this.#name(this.#number), 'a');
      const written = writeSync(this.#file, this.#rest);
      this.#bytes += written;
      this.#rest = this.#rest.subarray(written);
      if (this.#rest.length === 0) this.#rest = Buffer.from(this.#pending.splice(0).join(''));
    }
    if (this.#bytes < this.#snapshotAt) return;
    this.#snapshotAt = Number.POSITIVE_INFINITY;
    this.#db.saveDatabase();
  }

  #hook(): void {
    const { addCollection, removeCollection, loadDatabase } = this.#db;
    this.#db.loadDatabase = (options, done) =>
      loadDatabase.call(this.#db, options, (error) => {
        for (const collection of this.#db.collections) collection.ensureAllIndexes(true);
        done(error);
      });
    this.#db.addCollection = (name, options) => {
      const known = this.#db.collections.some((one) => one.name === name);
      const collection = addCollection.call(this.#db, name, options);
      if (known) return collection;
      this.#add(['add', collection]);
      this.#follow(collection);
      return collection;
    };
    this.#db.removeCollection = (name) => {
      removeCollection.call(this.#db, name);
      this.#add(['drop', name]);
    };
  }

  #follow(collection: Collection): void {
    const put = (rows: Row | readonly Row[]) => {
      for (const row of [rows].flat()) this.#add(['put', collection.name, row as Row]);
    };
    collection.on('insert', put);
    collection.on('update', put);
    collection.on('delete', ({ $loki }) => this.#add(['remove', collection.name, $loki]));
    // LokiJS emits the deletions of a batch only to a second listener.
    collection.on('delete', () => {});
  }

  #add(change: Change): void {
    // Changes that no answer follows, such as those of a sweep.
    if (this.#pending.length === 0) setImmediate(() => this.#flushLater());
    this.#pending.push(`${JSON.stringify(change, this.#db.serializeReplacer)}\n`);
  }

  #flushLater(): void {
    try {
      this.flush();
    } catch {
      // The next answer tries again, and fails if the write cannot be stored.
    }
  }

  #load(): Snapshot {
    const snapshot = JSON.parse(readFileSync(this.#db.filename, 'utf8')) as Snapshot;
    const files = this.#numbers().map((number) => readFileSync(this.#name(number), 'utf8'));
    return replay(snapshot, files.flatMap(readChanges));
  }

  /** Writes a snapshot, then removes earlier journals; until then a start replays them as well. */
  async #save(text: string): Promise<void> {
    this.#flushLater();
    if (this.#file !== undefined) closeSync(this.#file);
    const before = this.#number;
    this.#number += 1;
    [this.#file, this.#bytes] = [undefined, 0];
    const { filename } = this.#db;
    try {
      await writeFile(`${filename}~`, text);
      renameSync(`${filename}~`, filename);
      for (const number of this.#numbers()) if (number <= before) rmSync(this.#name(number));
    } catch (error) {
      rmSync(`${filename}~`, { force: true });
      throw error;
    } finally {
      this.#snapshotAt = Math.max(SNAPSHOT_BYTES, statSync(filename, { throwIfNoEntry: false })?.size ?? 0);
    }
  }

  #name(number: number): string {
    return `${this.#db.filename}.journal-${number}`;
  }

  /** Numbers of the existing journals, oldest first. */
  #numbers(): number[] {
    const { dir, base } = path.parse(this.#db.filename);
    const start = `${base}.journal-`;
    const names = readdirSync(dir).filter((name) => name.startsWith(start));
    return names.map((name) => Number(name.slice(start.length))).sort((a, b) => a - b);
  }
}
