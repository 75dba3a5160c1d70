import promises from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { Disk } from '../../../../infra/pool/agent/store/contract.ts';
import { type Revision, Revisions } from '../../../../infra/pool/agent/store/revisions.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { type Content, createSource, makeFile, openStore, temporary, watchedDisk } from './fixtures.ts';

const revisionOf = (files: Readonly<Record<string, Content>>): Revision => {
  const named = Object.entries(files).map(([name, { digest, bytes }]) => ({ name, digest, bytes }));
  return { digest: digestOfFiles(named), files: named };
};

async function setUp(files: readonly Content[], { bytes = 100_000, disk = promises as Disk } = {}) {
  const [storeFolder, folder] = [await temporary(), path.join(await temporary(), 'repository')];
  const { source, reads } = createSource(files);
  const store = await openStore({ folder: storeFolder });
  const revisions = await Revisions.open({ folder, bytes, store, disk });
  return { storeFolder, folder, source, reads, store, revisions };
}

it('A16 materialises a revision as read-only copies and reuses them', async () => {
  const [config, network] = [makeFile(300), makeFile()];
  const { revisions, source, reads } = await setUp([config, network]);
  const revision = revisionOf({ 'm/config.pbtxt': config, 'm/1/model.onnx': network });
  const first = await revisions.materialise(revision, source);
  if (!first.ok) throw new Error(first.refusal.detail);
  const file = path.join(first.value.path, 'm/1/model.onnx');
  expect(await promises.readFile(file)).toEqual(network.content);
  expect((await promises.stat(file)).mode & 0o777).toBe(0o444);
  const [one, other] = await Promise.all([1, 2].map(() => revisions.materialise(revision, source)));
  expect([one!.ok && one!.value.path, other!.ok && other!.value.path]).toEqual([first.value.path, first.value.path]);
  expect(reads).toHaveLength(2);
});

it('keeps the stored file when an engine writes to its copy, and copies again', async () => {
  const network = makeFile();
  const { revisions, source, reads, store } = await setUp([network]);
  const revision = revisionOf({ 'm/1/model.onnx': network });
  const first = await revisions.materialise(revision, source);
  if (!first.ok) throw new Error(first.refusal.detail);
  const file = path.join(first.value.path, 'm/1/model.onnx');
  await promises.chmod(file, 0o600);
  await promises.writeFile(file, 'something else');
  expect(await first.value.unchanged()).toBe(false);
  expect(await store.verify(network.digest)).toBe(true);
  const again = await revisions.materialise(revision, source);
  expect(again.ok && (await again.value.unchanged())).toBe(true);
  expect(await promises.readFile(file)).toEqual(network.content);
  expect(reads).toHaveLength(1);
});

it('sees a file that is added beside the copies, or replaced by a link', async () => {
  const network = makeFile();
  const { revisions, source } = await setUp([network]);
  const done = await revisions.materialise(revisionOf({ 'm/1/model.onnx': network }), source);
  if (!done.ok) throw new Error(done.refusal.detail);
  await promises.writeFile(path.join(done.value.path, 'm/1/extra.so'), '');
  expect(await done.value.unchanged()).toBe(false);
  await promises.rm(path.join(done.value.path, 'm/1/extra.so'));
  await promises.rm(path.join(done.value.path, 'm/1/model.onnx'));
  await promises.symlink('/etc/hostname', path.join(done.value.path, 'm/1/model.onnx'));
  expect(await done.value.unchanged()).toBe(false);
});

it.each(['../m/model.onnx', '/m/model.onnx', 'm//model.onnx', 'm/./model.onnx'])(
  'refuses the path %s',
  async (name) => {
    const file = makeFile();
    const { revisions, source, reads } = await setUp([file]);
    expect(await revisions.materialise(revisionOf({ [name]: file }), source)).toMatchObject({
      refusal: { reason: 'digest_mismatch' },
    });
    expect(reads).toEqual([]);
  },
);

it('refuses files that are not those of the revision', async () => {
  const [file, other] = [makeFile(), makeFile()];
  const { revisions, source } = await setUp([file, other]);
  const revision = { ...revisionOf({ 'm/model.onnx': file }), files: revisionOf({ 'm/model.onnx': other }).files };
  expect(await revisions.materialise(revision, source)).toMatchObject({ refusal: { digest: revision.digest } });
});

it('refuses a stored file that is swapped while it is copied', async () => {
  const file = makeFile();
  let swap = async () => {};
  const disk = watchedDisk(async (operation, act) => {
    if (operation === 'copyFile') await swap();
    return act();
  });
  const { revisions, source, storeFolder, folder } = await setUp([file], { disk });
  swap = async () => {
    await promises.rm(path.join(storeFolder, 'files', file.digest));
    await promises.writeFile(path.join(storeFolder, 'files', file.digest), Buffer.alloc(file.bytes));
  };
  const revision = revisionOf({ 'm/model.onnx': file });
  expect(await revisions.materialise(revision, source)).toMatchObject({ refusal: { reason: 'digest_mismatch' } });
  expect(await promises.readdir(folder)).toEqual([]);
  swap = async () => {};
  expect((await revisions.materialise(revision, source)).ok).toBe(true);
});

it('drops unused folders for a new one, and refuses it while all are used', async () => {
  const files = [makeFile(), makeFile(), makeFile()];
  const { revisions, source, folder } = await setUp(files, { bytes: 20_000 });
  const [one, two, three] = files.map((file) => revisionOf({ 'm/model.onnx': file }));
  const [first] = [await revisions.materialise(one!, source), await revisions.materialise(two!, source)];
  expect(await revisions.materialise(three!, source)).toMatchObject({ refusal: { reason: 'store_full' } });
  if (first.ok) first.value.release();
  expect((await revisions.materialise(three!, source)).ok).toBe(true);
  expect(await promises.readdir(folder)).toHaveLength(2);
});

it('leaves no partial folder on a full disk', async () => {
  const [file, other] = [makeFile(), makeFile()];
  let copies = 0;
  const disk = watchedDisk((operation, act) => {
    if (operation === 'copyFile' && ++copies === 2) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    return act();
  });
  const { revisions, source, folder } = await setUp([file, other], { disk });
  const revision = revisionOf({ 'm/a': file, 'm/b': other });
  expect(await revisions.materialise(revision, source)).toMatchObject({ refusal: { reason: 'disk_full' } });
  expect(await promises.readdir(folder)).toEqual([]);
});
