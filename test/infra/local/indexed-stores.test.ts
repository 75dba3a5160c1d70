// The emulator's own stores, in memory, with the indexes of the local stack.
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { CHANGED_AFTER } from '../../../infra/local/changed-after.ts';
import { type BlobStore, indexBlobs, indexTables, type TableStore } from '../../../infra/local/part/indexed-stores.ts';

const require = createRequire(import.meta.url);
type Opened<Store> = { default: new (file: string, inMemory: true) => Store };
const context = { contextId: 'test', startTime: new Date(0) };
const ACCOUNT = 'account';

interface Blobs extends BlobStore {
  createContainer(context: unknown, container: object): Promise<unknown>;
  createBlob(context: unknown, blob: object): Promise<unknown>;
  getBlob(context: unknown, account: string, container: string, name: string): Promise<{ name: string } | undefined>;
  deleteBlob(context: unknown, account: string, container: string, name: string, options: object): Promise<void>;
}
interface Tables extends TableStore {
  createTable(context: unknown, table: object): Promise<void>;
  insertTableEntity(context: unknown, table: string, account: string, entity: object, batch: string): Promise<unknown>;
  deleteTableEntity(...asked: [unknown, string, string, string, string, string, string]): Promise<void>;
}

const lease = { leaseState: 'available', leaseStatus: 'unlocked' };
let etags = 0;
const blobOf = (containerName: string, name: string) => ({
  ...{ accountName: ACCOUNT, containerName, name, snapshot: '', isCommitted: true },
  properties: { ...lease, etag: `"${++etags}"`, blobType: 'BlockBlob' },
});

async function openBlobs(indexed = true) {
  const { default: Store }: Opened<Blobs> = require('azurite/dist/src/blob/persistence/LokiBlobMetadataStore');
  const store = new Store('', true);
  const { examined } = indexed ? indexBlobs(store) : { examined: () => 0 };
  await store.init();
  for (const name of ['outcomes', 'hosts'])
    await store.createContainer(context, { accountName: ACCOUNT, name, properties: { etag: '"0"', ...lease } });
  const put = (name: string, container = 'outcomes') => store.createBlob(context, blobOf(container, name));
  const list = async (prefix: string, marker = '', most = 5_000) => {
    const listed = await store.listBlobs(context, ACCOUNT, 'outcomes', undefined, undefined, prefix, most, marker);
    return { names: listed[0].map((blob) => Reflect.get(blob, 'name')), next: listed[2] };
  };
  const remove = (name: string) => store.deleteBlob(context, ACCOUNT, 'outcomes', name, {});
  const find = (name: string) => store.getBlob(context, ACCOUNT, 'outcomes', name);
  return { put, list, remove, find, examined };
}

async function openTable(indexed = true) {
  const { default: Store }: Opened<Tables> = require('azurite/dist/src/table/persistence/LokiTableMetadataStore');
  const store = new Store('', true);
  const { examined } = indexed ? indexTables(store) : { examined: () => 0 };
  await store.init();
  await store.createTable(context, { account: ACCOUNT, table: 'uploads' });
  const put = (PartitionKey: string, RowKey: string) =>
    store.insertTableEntity(context, 'uploads', ACCOUNT, { PartitionKey, RowKey, properties: {}, eTag: '1' }, '');
  const remove = (partition: string, row: string) =>
    store.deleteTableEntity(context, 'uploads', ACCOUNT, partition, row, '*', '');
  const query = async (filter: string, top = 1_000, at: (string | undefined)[] = []) => {
    const found = await store.queryTableEntities(context, ACCOUNT, 'uploads', { filter, top }, at[0], at[1]);
    return { keys: found[0].map(({ RowKey }) => RowKey), next: found.slice(1) as (string | undefined)[] };
  };
  return { put, remove, query, examined };
}

const rangeOf = (partition: string, from: string, to: string) =>
  `PartitionKey eq '${partition}' and RowKey ge '${from}' and RowKey lt '${to}'`;

describe('C11: the storage emulator reads as much with 200 finished uploads as with none', () => {
  it.each([0, 200])('blobs, after %d', async (finished) => {
    const blobs = await openBlobs();
    for (let at = 0; at < finished; at += 1) {
      await blobs.put(`acme/done-${at}/1/transcript`);
      await blobs.put(`timers-${at}`, 'hosts');
    }
    const { next } = await blobs.list('', `${CHANGED_AFTER}0`);
    const before = blobs.examined();
    await blobs.put('acme/new/1/plan');
    await blobs.put('acme/new/1/transcript');
    expect((await blobs.list('', next)).names).toEqual(['acme/new/1/plan', 'acme/new/1/transcript']);
    expect((await blobs.list('acme/new/')).names).toHaveLength(2);
    expect(await blobs.find('acme/new/1/plan')).toMatchObject({ name: 'acme/new/1/plan' });
    await blobs.remove('acme/new/1/plan');
    expect((await blobs.list('acme/new/')).names).toEqual(['acme/new/1/transcript']);
    expect(blobs.examined() - before).toBe(9);
  });

  it.each([0, 200])('rows, after %d', async (finished) => {
    const table = await openTable();
    for (let at = 0; at < finished; at += 1) await table.put('acme', `u!done-${at}`);
    const before = table.examined();
    await table.put('acme', 'q!1');
    await table.put('acme', 'q!2');
    await table.put('other', 'q!3');
    expect((await table.query(rangeOf('acme', 'q!', 'q!~'))).keys).toEqual(['q!1', 'q!2']);
    await table.remove('acme', 'q!1');
    expect((await table.query(rangeOf('acme', 'q!', 'q!~'))).keys).toEqual(['q!2']);
    expect(table.examined() - before).toBe(4);
  });
});

describe('C11: an indexed store answers as one without an index', () => {
  it('to listings by prefix and page', async () => {
    const answers = await Promise.all(
      [true, false].map(async (indexed) => {
        const { put, list, remove } = await openBlobs(indexed);
        for (const name of ['b/2', 'a/1', 'a/10', 'a-b', 'a', 'b/1', 'c(.+)/x', 'a/1']) await put(name);
        await remove('a/10');
        const first = await list('', '', 2);
        return [await list('a/'), await list('c(.+)/'), await list('z'), first, await list('', first.next, 10)];
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });

  it('to queries by range, by another filter and by page', async () => {
    const answers = await Promise.all(
      [true, false].map(async (indexed) => {
        const { put, query, remove } = await openTable(indexed);
        for (const key of ['b', 'a', 'c', 'd', "it's"]) for (const at of ['p', 'q', 'p!']) await put(at, key);
        await remove('p', 'c');
        const range = rangeOf('p', 'a', 'z');
        const first = await query(range, 1);
        const rest = await query(range, 10, first.next);
        const others = [await query("RowKey eq 'd'"), await query('', 4), await query(rangeOf('p', "it''s", 'j'))];
        return [first, rest, ...others];
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });
});

it('C11: a listing of changes has each blob once, in its last version', async () => {
  const { put, list, remove } = await openBlobs();
  for (const name of ['a', 'b', 'c']) await put(name);
  const first = await list('', `${CHANGED_AFTER}0`, 2);
  expect(first.names).toEqual(['a', 'b']);
  await put('a');
  await remove('b');
  const second = await list('', first.next);
  expect(second.names).toEqual(['c', 'a']);
  expect(await list('', second.next)).toEqual({ names: [], next: second.next });
});
