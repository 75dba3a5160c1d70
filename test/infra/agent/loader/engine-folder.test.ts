import promises from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { EngineFolder, type Revision } from '../../../../infra/pool/agent/loader/engine-folder.ts';
import type { Disk } from '../../../../infra/pool/agent/store/contract.ts';
import { readConfig } from '../../../../infra/pool/models/config/read-parts.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { type Content, createSource, makeFile, openStore, sha256, temporary, watchedDisk } from '../store/fixtures.ts';

const revisionOf = (files: Readonly<Record<string, Content>>): Revision => {
  const named = Object.entries(files).map(([name, { digest, bytes }]) => ({ name, digest, bytes }));
  return { digest: digestOfFiles(named), files: named };
};

async function setUp(files: readonly Content[], disk: Disk = promises) {
  const [storeFolder, folder] = [await temporary(), path.join(await temporary(), 'repository')];
  const { source, reads } = createSource(files);
  const store = await openStore({ folder: storeFolder });
  const engineFolder = await EngineFolder.open({ folder, store, disk });
  async function place(revision: Revision) {
    const placed = await engineFolder.place(revision, source);
    if (!placed.ok) throw new Error(placed.refusal.detail);
    return placed.value;
  }
  return { storeFolder, folder, source, reads, store, engineFolder, place };
}

const textFile = (text: string): Content => {
  const content = Buffer.from(text);
  return { content, bytes: content.length, digest: sha256(content) };
};

it('A16 T6 places two revisions beside each other and shares equal parts', async () => {
  const ensemble = textFile(`name: "m"
platform: "ensemble"
ensemble_scheduling { step [ { model_name: "step" model_version: -1 }, { model_name: "elsewhere" } ] }
parameters { key: "stream_model" value { string_value: "m-stream" } }
parameters { key: "vocabulary" value { string_value: "../step/tokens.txt" } }
`);
  const files = { 'm/config.pbtxt': ensemble, 'm-stream/config.pbtxt': textFile('name: "m-stream"') };
  const [one, other] = [makeFile(), makeFile()];
  const { engineFolder, folder, place } = await setUp([...Object.values(files), one, other]);
  const revisions = [one, other].map((network) => revisionOf({ ...files, 'step/1/model.onnx': network }));
  const [first, second] = [await place(revisions[0]!), await place(revisions[1]!)];
  expect(first.names.get('m')).toMatch(/^m\.[0-9a-f]{12}$/);
  expect(first.names.get('m')).not.toBe(second.names.get('m'));
  expect(first.names.get('m-stream')).toBe(second.names.get('m-stream'));
  const all = new Set([...first.names.values(), ...second.names.values()]);
  expect((await promises.readdir(folder)).sort()).toEqual([...all].sort());
  const config = await readConfig(path.join(folder, first.names.get('m')!));
  expect(config?.name).toBe(first.names.get('m'));
  expect(config?.ensemble_scheduling?.step.map((step) => step.model_name)).toEqual([
    first.names.get('step'),
    'elsewhere',
  ]);
  expect(config?.parameters.stream_model?.string_value).toBe(first.names.get('m-stream'));
  expect(config?.parameters.vocabulary?.string_value).toBe(`../${first.names.get('step')}/tokens.txt`);
  await engineFolder.remove(revisions[0]!.digest);
  expect((await promises.readdir(folder)).sort()).toEqual([...second.names.values()].sort());
  expect(await engineFolder.find(revisions[1]!.digest)?.unchanged()).toBe(true);
});

it('A16 places read-only copies of stored files', async () => {
  const network = makeFile();
  const { place, folder, reads } = await setUp([network]);
  const revision = revisionOf({ 'm/1/model.onnx': network });
  const { names } = await place(revision);
  const file = path.join(folder, names.get('m')!, '1/model.onnx');
  expect(await promises.readFile(file)).toEqual(network.content);
  expect((await promises.stat(file)).mode & 0o777).toBe(0o444);
  await place(revision);
  expect(reads).toHaveLength(1);
});

it('C7 keeps the stored file when an engine writes to its copy, and copies again', async () => {
  const network = makeFile();
  const { place, folder, reads, store } = await setUp([network]);
  const revision = revisionOf({ 'm/1/model.onnx': network });
  const first = await place(revision);
  const file = path.join(folder, first.names.get('m')!, '1/model.onnx');
  await promises.chmod(file, 0o600);
  await promises.writeFile(file, 'something else');
  expect(await first.unchanged()).toBe(false);
  expect(await store.verify(network.digest)).toBe(true);
  expect(await (await place(revision)).unchanged()).toBe(true);
  expect(await promises.readFile(file)).toEqual(network.content);
  expect(reads).toHaveLength(1);
});

it('C7 sees a file that is added beside the copies, or replaced by a link', async () => {
  const network = makeFile();
  const { place, folder } = await setUp([network]);
  const { names, unchanged } = await place(revisionOf({ 'm/1/model.onnx': network }));
  const at = (name: string) => path.join(folder, names.get('m')!, '1', name);
  await promises.writeFile(at('extra.so'), '');
  expect(await unchanged()).toBe(false);
  await promises.rm(at('extra.so'));
  await promises.rm(at('model.onnx'));
  await promises.symlink('/etc/hostname', at('model.onnx'));
  expect(await unchanged()).toBe(false);
});

it.each(['../m/model.onnx', '/m/model.onnx', 'm//model.onnx', 'm/./model.onnx', 'model.onnx'])(
  'refuses the path %s',
  async (name) => {
    const file = makeFile();
    const { engineFolder, source, reads } = await setUp([file]);
    expect(await engineFolder.place(revisionOf({ [name]: file }), source)).toMatchObject({
      refusal: { reason: 'digest_mismatch' },
    });
    expect(reads).toEqual([]);
  },
);

it('refuses files that are not those of the revision', async () => {
  const [file, other] = [makeFile(), makeFile()];
  const { engineFolder, source } = await setUp([file, other]);
  const revision = { ...revisionOf({ 'm/model.onnx': file }), files: revisionOf({ 'm/model.onnx': other }).files };
  expect(await engineFolder.place(revision, source)).toMatchObject({ refusal: { digest: revision.digest } });
});

it('refuses a configuration that no engine could read', async () => {
  const config = textFile('nonsense: 1');
  const { engineFolder, source, folder } = await setUp([config]);
  expect(await engineFolder.place(revisionOf({ 'm/config.pbtxt': config }), source)).toMatchObject({
    refusal: { reason: 'unusable', detail: "m/config.pbtxt: line 1: ModelConfig has no field 'nonsense'" },
  });
  expect(await promises.readdir(folder)).toEqual([]);
});

it('C7 refuses a stored file that is swapped while it is copied', async () => {
  const file = makeFile();
  let swap = async () => {};
  const disk = watchedDisk(async (operation, act) => {
    if (operation === 'copyFile') await swap();
    return act();
  });
  const { engineFolder, source, storeFolder, folder } = await setUp([file], disk);
  swap = async () => {
    await promises.rm(path.join(storeFolder, 'files', file.digest));
    await promises.writeFile(path.join(storeFolder, 'files', file.digest), Buffer.alloc(file.bytes));
  };
  const revision = revisionOf({ 'm/model.onnx': file });
  expect(await engineFolder.place(revision, source)).toMatchObject({ refusal: { reason: 'digest_mismatch' } });
  expect(await promises.readdir(folder)).toEqual([]);
  swap = async () => {};
  expect((await engineFolder.place(revision, source)).ok).toBe(true);
});

it('leaves no partial folder on a full disk', async () => {
  const [file, other] = [makeFile(), makeFile()];
  let copies = 0;
  const disk = watchedDisk((operation, act) => {
    if (operation === 'copyFile' && ++copies === 2) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    return act();
  });
  const { engineFolder, source, folder } = await setUp([file, other], disk);
  const revision = revisionOf({ 'm/a': file, 'm/b': other });
  expect(await engineFolder.place(revision, source)).toMatchObject({ refusal: { reason: 'disk_full' } });
  expect(await promises.readdir(folder)).toEqual([]);
});

it('empties the folder that a former process left', async () => {
  const file = makeFile();
  const { folder, place, store } = await setUp([file]);
  await place(revisionOf({ 'm/1/model.onnx': file }));
  await EngineFolder.open({ folder, store, disk: promises });
  expect(await promises.readdir(folder)).toEqual([]);
});
