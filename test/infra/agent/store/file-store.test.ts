import promises from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { folderOf } from '../../../../infra/pool/agent/store/folder-source.ts';
import { createSource, createTime, makeFile, openStore, sha256, temporary, watchedDisk } from './fixtures.ts';

const stored = (folder: string) => promises.readdir(path.join(folder, 'files'));
const parts = (folder: string) => promises.readdir(path.join(folder, 'parts'));

it('A11 stores a verified file read-only and fetches it once', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source, reads } = createSource([file]);
  const store = await openStore({ folder });
  const first = await store.fetch(file, source);
  expect(first.ok && (await promises.readFile(first.value.path))).toEqual(file.content);
  expect((await promises.stat(path.join(folder, 'files', file.digest))).mode & 0o777).toBe(0o400);
  expect((await store.fetch(file, source)).ok).toBe(true);
  expect(reads).toHaveLength(1);
  expect(await parts(folder)).toEqual([]);
});

it('T6 fetches from a mounted folder and resumes there', async () => {
  const [folder, mount, file] = [await temporary(), await temporary(), makeFile()];
  await promises.writeFile(path.join(mount, file.digest), file.content.subarray(0, 4_000));
  const store = await openStore({ folder });
  const mounted = folderOf(mount, new Map([[file.digest, file.digest]]));
  expect(await store.fetch(file, mounted)).toMatchObject({ refusal: { reason: 'source_failed' } });
  await promises.writeFile(path.join(mount, file.digest), file.content);
  expect((await store.fetch(file, mounted)).ok).toBe(true);
  await promises.rm(path.join(mount, file.digest));
  expect(await store.verify(file.digest)).toBe(true);
});

it('resumes a truncated download by range', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  let cut = true;
  const { source, reads } = createSource([file], (piece, at) => (cut && at >= 6_000 ? new Error('reset') : piece));
  const store = await openStore({ folder });
  expect(await store.fetch(file, source)).toMatchObject({ refusal: { reason: 'source_failed', detail: 'reset' } });
  expect(await stored(folder)).toEqual([]);
  cut = false;
  expect((await store.fetch(file, source)).ok).toBe(true);
  expect(reads.map(({ from }) => from)).toEqual([0, 6_000]);
});

it('refuses other bytes by digest and shows nothing of them', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source } = createSource([file], (piece, at) => (at === 3_000 ? Buffer.alloc(1_000) : piece));
  const store = await openStore({ folder });
  const done = await store.fetch(file, source);
  expect(done).toMatchObject({ refusal: { reason: 'digest_mismatch', digest: file.digest } });
  expect([...(await stored(folder)), ...(await parts(folder))]).toEqual([]);
});

it('refuses a source that sends more than the file has', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source } = createSource([file], (piece, at) => (at === 9_000 ? Buffer.concat([piece, piece]) : piece));
  const store = await openStore({ folder });
  expect(await store.fetch(file, source)).toMatchObject({ refusal: { reason: 'digest_mismatch' } });
});

it('starts over when the part it resumes was rotten', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source, reads } = createSource([file]);
  const store = await openStore({ folder });
  await promises.writeFile(path.join(folder, 'parts', `${file.digest}.10000.gone`), Buffer.alloc(5_000));
  expect((await store.fetch(file, source)).ok).toBe(true);
  expect(reads.map(({ from }) => from)).toEqual([5_000, 0]);
});

it('fetches a stored file again after its bytes were swapped', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source, reads } = createSource([file]);
  const store = await openStore({ folder });
  await store.fetch(file, source);
  const swapped = path.join(folder, 'files', file.digest);
  await promises.rm(swapped);
  await promises.writeFile(swapped, Buffer.alloc(file.bytes));
  const again = await store.fetch(file, source);
  expect(again.ok && sha256(await promises.readFile(again.value.path))).toBe(file.digest);
  expect(reads).toHaveLength(2);
});

it('shares one download among callers and among stores of a node', async () => {
  const [folder, file] = [await temporary(), makeFile()];
  const { source, reads } = createSource([file]);
  // No time passes: the waiting store never finds the lock stale.
  const start = Date.now();
  const shared = { folder, now: () => start, sleep: createTime().sleep };
  const [one, other] = [await openStore(shared), await openStore(shared)];
  const all = await Promise.all([one, one, other].map((store) => store.fetch(file, source)));
  expect(all.every(({ ok }) => ok)).toBe(true);
  expect(reads).toHaveLength(1);
});

it('takes a download over from a process that fell silent', async () => {
  const [folder, file, time] = [await temporary(), makeFile(), createTime()];
  const store = await openStore({ folder, now: time.now, sleep: time.sleep });
  const begin = time.now();
  await promises.writeFile(path.join(folder, 'parts', `${file.digest}.lock`), 'another process');
  await promises.writeFile(path.join(folder, 'parts', `${file.digest}.10000.other`), file.content.subarray(0, 7_000));
  const { source, reads } = createSource([file]);
  expect((await store.fetch(file, source)).ok).toBe(true);
  expect(time.now() - begin).toBeGreaterThan(29_000);
  expect(reads.map(({ from }) => from)).toEqual([7_000]);
});

it('A11 leaves a download to a process that hashes its part for long', async () => {
  const [folder, file, time] = [await temporary(), makeFile(), createTime()];
  const { source, reads } = createSource([file]);
  const { every, now } = time;
  await (await openStore({ folder })).list();
  await promises.writeFile(path.join(folder, 'parts', `${file.digest}.10000.gone`), file.content.subarray(0, 5_000));
  // The waiting store looks at the lock once while the first one hashes.
  const waits = Promise.withResolvers<unknown>();
  const sleep = async () => {
    waits.resolve(undefined);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const other = await openStore({ folder, now, sleep });
  let second: Promise<{ readonly ok: boolean }> | undefined;
  const disk = watchedDisk(async (operation, act) => {
    if (operation === 'file.read' && !second) {
      await time.pass(31_000);
      second = other.fetch(file, source);
      await Promise.race([second, waits.promise]);
    }
    return act();
  });
  const store = await openStore({ folder, disk, now, every });
  expect(await store.fetch(file, source)).toMatchObject({ ok: true });
  expect(await second).toMatchObject({ ok: true });
  expect(reads.map(({ from }) => from)).toEqual([5_000]);
});

it('publishes the right bytes when it is overtaken at any operation', async () => {
  for (let at = 1, reached = true; reached; at += 1) {
    const [folder, file] = [await temporary(), makeFile(3_000)];
    const { source } = createSource([file]);
    // The clock of the other store makes every lock stale.
    const other = await openStore({ folder, now: () => Date.now() + 60_000 });
    let count = 0;
    const disk = watchedDisk(async (_, act) => {
      count += 1;
      if (count === at) expect((await other.fetch(file, source)).ok).toBe(true);
      return act();
    });
    const store = await openStore({ folder, disk });
    const done = await store.fetch(file, source);
    reached = count >= at;
    expect(done.ok && sha256(await promises.readFile(done.value.path)), `operation ${at}`).toBe(file.digest);
    expect((await parts(folder)).filter((name) => !name.endsWith('.lock'))).toEqual([]);
    await promises.rm(folder, { recursive: true });
  }
});

it('evicts in the policy order, but nothing pinned or leased', async () => {
  const folder = await temporary();
  const [leased, pinned, least, next, wanted] = Array.from({ length: 5 }, () => makeFile(10_000));
  const files = [leased!, pinned!, least!, next!, wanted!];
  const { source } = createSource(files);
  const rank = files.map(({ digest }) => digest);
  const order = (all: readonly { digest: string; bytes: number }[]) =>
    [...all].sort((one, other) => rank.indexOf(one.digest) - rank.indexOf(other.digest));
  const store = await openStore({ folder, bytes: 40_000, order });
  await store.fetch(leased!, source);
  for (const file of [pinned!, least!, next!]) {
    const done = await store.fetch(file, source);
    if (done.ok) done.value.release();
  }
  store.pin([pinned!.digest]);
  expect((await store.fetch(wanted!, source)).ok).toBe(true);
  expect((await stored(folder)).sort()).toEqual([leased, pinned, next, wanted].map((file) => file!.digest).sort());
  expect(await store.evict(leased!.digest)).toBe(false);
});

it('refuses what does not fit and evicts nothing in vain', async () => {
  const [folder, held, loose, large] = [await temporary(), makeFile(), makeFile(), makeFile(35_000)];
  const { source } = createSource([held, loose, large]);
  const store = await openStore({ folder, bytes: 40_000 });
  await store.fetch(held, source);
  const done = await store.fetch(loose, source);
  if (done.ok) done.value.release();
  expect(await store.fetch(large, source)).toMatchObject({ refusal: { reason: 'store_full', digest: large.digest } });
  expect(await stored(folder)).toHaveLength(2);
  expect(await parts(folder)).toEqual([]);
});

it('A11 counts a file that another agent publishes during the count', async () => {
  const [folder, other, file] = [await temporary(), makeFile(), makeFile()];
  const { source } = createSource([file]);
  let isPublished = false;
  const disk = watchedDisk(async (operation, act) => {
    const done = await act();
    if (operation === 'readdir' && !isPublished) {
      isPublished = true;
      await promises.rename(part, path.join(folder, 'files', other.digest));
    }
    return done;
  });
  const store = await openStore({ folder, disk, bytes: 15_000, order: () => [] });
  const part = path.join(folder, 'parts', `${other.digest}.10000.other`);
  await promises.writeFile(part, other.content);
  expect(await store.fetch(file, source)).toMatchObject({ refusal: { reason: 'store_full' } });
});

it('refuses on a full disk, frees the part and keeps residents', async () => {
  const [folder, resident, file] = [await temporary(), makeFile(), makeFile()];
  const { source } = createSource([resident, file]);
  await (await openStore({ folder })).fetch(resident, source);
  let writes = 0;
  const disk = watchedDisk((operation, act) => {
    if (operation === 'file.write' && ++writes > 4) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    return act();
  });
  const store = await openStore({ folder, disk });
  expect(await store.fetch(file, source)).toMatchObject({ refusal: { reason: 'disk_full', digest: file.digest } });
  expect(await stored(folder)).toEqual([resident.digest]);
  expect(await parts(folder)).toEqual([]);
});

it('stops a download with the store and resumes it later', async () => {
  const [folder, file, stop] = [await temporary(), makeFile(), new AbortController()];
  const { source } = createSource([file], (piece, at) => {
    if (at === 5_000) stop.abort();
    return piece;
  });
  const store = await openStore({ folder, signal: stop.signal });
  expect(await store.fetch(file, source)).toMatchObject({ refusal: { reason: 'stopped' } });
  const { source: whole, reads } = createSource([file]);
  expect((await (await openStore({ folder })).fetch(file, whole)).ok).toBe(true);
  expect(reads.map(({ from }) => from)).toEqual([5_000]);
});

it.each(['before', 'after'])('A11 recovers from a crash %s each operation of a fetch that evicts', async (moment) => {
  for (let at = 1; ; at += 1) {
    const [folder, old, file] = [await temporary(), makeFile(1_000), makeFile(1_000)];
    // A silent process is overtaken after few looks.
    const time = createTime(10_000);
    const { source } = createSource([old, file]);
    const options = { folder, bytes: 1_500, now: time.now, sleep: time.sleep };
    const done = await (await openStore(options)).fetch(old, source);
    if (done.ok) done.value.release();
    let count = 0;
    const disk = watchedDisk(async (operation, act) => {
      count += 1;
      if (count < at) return act();
      // The system closes the files of a killed process.
      if ((count === at && moment === 'after') || operation === 'file.close') await act();
      throw new Error('killed');
    });
    const killed = await openStore({ ...options, disk })
      .then((store) => store.fetch(file, source))
      .catch(() => undefined);
    for (const name of await stored(folder)) {
      expect(sha256(await promises.readFile(path.join(folder, 'files', name)))).toBe(name);
    }
    const next = await openStore(options);
    expect(await next.fetch(file, source)).toMatchObject({ ok: true });
    expect(await stored(folder)).toEqual([file.digest]);
    // A lock may stay: it is stale, and holds no bytes.
    expect((await parts(folder)).filter((name) => !name.endsWith('.lock'))).toEqual([]);
    await promises.rm(folder, { recursive: true });
    if (killed?.ok) {
      expect(count).toBeLessThan(at);
      return;
    }
  }
});
