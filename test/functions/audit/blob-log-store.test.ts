// The promises of storage that the sequencer relies on, asked of the emulator and of the storage that tests are made with.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BlobLogStore, openBlobLogStore } from '../../../functions/audit/log/blob-log-store.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { LOG_CLOCK_MS } from '../../../shared/audit/limits.ts';
import { MemoryStore } from '../../fake/log-store.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';

const folder = temporaryFolder();
let stack: Stack;
let blobs: BlobLogStore;
beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob'] });
  blobs = openBlobLogStore(storageConnection(stack.ports));
  await blobs.ensure(AbortSignal.timeout(5_000));
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

const stores: [string, () => LogStore][] = [
  ['the emulator', () => blobs],
  ['memory', () => new MemoryStore()],
];
const text = (value: string) => new TextEncoder().encode(value);

describe.each(stores)('C9 storage of logs: %s', (name, open) => {
  it('one of many creates, one of many replaces what it has read', async () => {
    const store = open();
    const many = Array.from({ length: 8 }, (_, at) => text(String(at)));
    const created = await Promise.all(many.map((bytes) => store.create('state', 'one', bytes)));
    expect(created.filter(Boolean)).toHaveLength(1);
    const kept = await store.read('state', 'one');
    if (!kept) throw new Error('it is not there');
    expect(kept.bytes).toEqual(many[created.indexOf(true)]);
    const replaced = await Promise.all(many.map((bytes) => store.replace('state', 'one', bytes, kept.version)));
    expect(replaced.filter(Boolean)).toHaveLength(1);
    const next = await store.read('state', 'one');
    expect(next?.bytes).toEqual(many[replaced.indexOf(true)]);
    expect(next?.version).not.toBe(kept.version);
    expect(await store.replace('state', 'none', text('x'), kept.version)).toBe(false);
  });

  it('lists by rising name, removes, and knows nothing of what is not there', async () => {
    const store = open();
    for (const one of ['eu/b', 'eu/a', 'us/a', 'eu/c']) await store.create('intake', one, text(one));
    expect(await store.list('intake', 'eu/', 2)).toEqual(['eu/a', 'eu/b']);
    await store.remove('intake', 'eu/a');
    await store.remove('intake', 'eu/a');
    expect(await store.list('intake', 'eu/', 10)).toEqual(['eu/b', 'eu/c']);
    expect(await store.read('intake', 'eu/a'), name).toBeUndefined();
  });
});

describe('C9 the clock of storage', () => {
  it('comes from the first answer, even a 404', async () => {
    const fresh = [0, 1].map(() => openBlobLogStore(storageConnection(stack.ports)));
    await blobs.create('state', 'eu/there', text('x'));
    for (const [at, name] of ['eu/there', 'eu/none'].entries()) {
      const store = fresh[at] as BlobLogStore;
      expect(store.clock?.()).toBeUndefined();
      await store.read('state', name);
      expect(Math.abs((store.clock?.() ?? 0) - Date.now()), name).toBeLessThan(LOG_CLOCK_MS);
    }
  });
});

describe('C9 the right to write', () => {
  it('is one process’s at a time, is held on, and can be given back', async () => {
    const first = await blobs.hold('eu/lock', 15, undefined);
    expect(first).toBeDefined();
    expect(await blobs.hold('eu/lock', 15, undefined)).toBeUndefined();
    expect(await blobs.hold('eu/lock', 15, first)).toBe(first);
    await blobs.release('eu/lock', first as string);
    const second = await blobs.hold('eu/lock', 15, undefined);
    expect(second).toBeDefined();
    expect(await blobs.hold('eu/lock', 15, first)).toBeUndefined();
  });
});
