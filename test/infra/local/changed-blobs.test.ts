// The emulator's own blob store, in memory, with the listing of changes.
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { CHANGED_AFTER } from '../../../infra/local/changed-after.ts';
import { type BlobStore, listChanges } from '../../../infra/local/part/changed-blobs.ts';

interface Blobs extends BlobStore {
  createContainer(context: unknown, container: object): Promise<unknown>;
  createBlob(context: unknown, blob: object): Promise<unknown>;
  deleteBlob(context: unknown, account: string, container: string, name: string, options: object): Promise<void>;
}

const context = { contextId: 'test', startTime: new Date(0) };
const ACCOUNT = 'account';
const lease = { leaseState: 'available', leaseStatus: 'unlocked' };

async function openBlobs() {
  const require = createRequire(import.meta.url);
  const { default: Store }: { default: new (file: string, inMemory: true) => Blobs } =
    require('azurite/dist/src/blob/persistence/LokiBlobMetadataStore');
  const store = new Store('', true);
  listChanges(store);
  await store.init();
  for (const name of ['outcomes', 'hosts'])
    await store.createContainer(context, { accountName: ACCOUNT, name, properties: { etag: '"0"', ...lease } });
  let etags = 0;
  return {
    put: (name: string, containerName = 'outcomes') =>
      store.createBlob(context, {
        ...{ accountName: ACCOUNT, containerName, name, snapshot: '', isCommitted: true },
        properties: { ...lease, etag: `"${++etags}"`, blobType: 'BlockBlob' },
      }),
    async list(marker: string, most?: number) {
      const listed = await store.listBlobs(context, ACCOUNT, 'outcomes', undefined, undefined, '', most, marker);
      return { names: listed[0].map((blob) => Reflect.get(blob, 'name')), next: listed[2] };
    },
    remove: (name: string) => store.deleteBlob(context, ACCOUNT, 'outcomes', name, {}),
  };
}

it('C11: lists each changed blob once, in its last version', async () => {
  const { put, list, remove } = await openBlobs();
  for (const name of ['a', 'b', 'c']) await put(name);
  await put('x', 'hosts');
  const first = await list(`${CHANGED_AFTER}0`, 2);
  expect(first.names).toEqual(['a', 'b']);
  await put('a');
  await remove('b');
  const second = await list(first.next);
  expect(second.names).toEqual(['c', 'a']);
  expect(await list(second.next)).toEqual({ names: [], next: second.next });
  expect((await list('')).names).toEqual(['a', 'c']);
});
