// Kills the storage emulator so that it has lost nothing it has said yes to. The real service never does; the emulator
// keeps its index in memory and writes it every five seconds, and what was said in between would be gone.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { Stores } from '../../../functions/stores.ts';
import type { Stack } from '../../../infra/local/stack.ts';
import type { RoughProxy } from './rough-proxy.ts';

const PATIENCE = { timeout: 60_000, interval: 100 };

/**
 * Shuts the way to it, waits until what it knows is on its disk, kills it, and waits until it is back. Whoever asks
 * meanwhile is not answered. `direct` goes around the proxies.
 */
export async function killStorage(
  stack: Stack,
  folder: string,
  direct: Stores,
  ways: readonly RoughProxy[],
  mark: string,
): Promise<void> {
  await Promise.all(ways.map((way) => way.shut()));
  const { blobs, rows } = direct;
  // Marks are younger than everything else: an index that knows them knows all.
  await blobs.create('outcomes', mark, new Uint8Array([1]));
  await rows.commit('!marks', [{ type: 'put', key: mark, value: {} }]);
  const text = (name: string) => readFileSync(path.join(folder, 'blob', name), 'utf8');
  await expect.poll(() => text('table.json'), PATIENCE).toContain(mark);
  await expect.poll(() => text('blob.json'), PATIENCE).toContain(mark);
  const extent = extentOf(text('blob.json'), mark);
  await expect.poll(() => text('blob-extent.json'), PATIENCE).toContain(extent);
  stack.kill('blob');
  await expect.poll(() => stack.isReady('blob'), PATIENCE).toBe(false);
  await expect.poll(() => stack.isReady('blob'), PATIENCE).toBe(true);
  await blobs.remove('outcomes', mark);
  for (const way of ways) way.open();
}

/** Where the emulator has put the bytes of a blob. */
function extentOf(index: string, name: string): string {
  const { collections } = JSON.parse(index) as {
    collections: { data: { name?: string; persistency?: { id: string } }[] }[];
  };
  const found = collections.flatMap(({ data }) => data).find((one) => one.name === name);
  return found?.persistency?.id ?? '';
}
