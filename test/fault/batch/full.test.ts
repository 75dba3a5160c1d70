// A full storage account below the functions' own stores: refused writes leave nothing behind, and free space
// ends it.
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBlobs } from '../../../functions/store/blobs.ts';
import { openTable } from '../../../functions/store/table-rows.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { isStorageFull } from '../../../shared/storage-full.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';

const PATIENCE = { timeout: 10_000, interval: 50 };
const folder = temporaryFolder();
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob'] });
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

it('C11 T4: refuses blobs and rows when full, and recovers with space', async () => {
  const connection = storageConnection(stack.ports as Record<string, number>);
  const [blobs, rows] = [openBlobs(connection), openTable(connection, 'full')];
  const signal = AbortSignal.timeout(10_000);
  await Promise.all([blobs.ensure(signal), rows.ensure(signal)]);
  const quota = path.join(folder.path, 'blob', 'quota');
  const put = (key: string) => rows.commit('p', [{ type: 'insert', key, value: {} }]);
  expect(await put('before')).toBe(true);
  writeFileSync(quota, '0');
  const refused = (work: Promise<unknown>) => work.then(() => false, isStorageFull);
  let tries = 0;
  await expect.poll(() => refused(put(`try-${tries++}`)), PATIENCE).toBe(true);
  expect(await refused(put('during'))).toBe(true);
  expect(await refused(blobs.create('outcomes', 'during', new Uint8Array(10)))).toBe(true);
  expect(await rows.read('p', 'before')).toBeDefined();
  expect(await blobs.find('outcomes', 'during')).toBeUndefined();
  expect(await rows.read('p', 'during')).toBeUndefined();
  rmSync(quota);
  await expect.poll(() => put('during').catch(() => false), PATIENCE).toBe(true);
  expect(await blobs.create('outcomes', 'during', new Uint8Array(10))).toBe('created');
});
