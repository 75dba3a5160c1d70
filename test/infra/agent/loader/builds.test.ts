import promises from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { placedName, selectBuild } from '../../../../infra/pool/agent/loader/builds.ts';
import { createReleased } from '../../../../infra/pool/agent/loader/catalog.ts';
import { EngineFolder } from '../../../../infra/pool/agent/loader/engine-folder.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { makeBundle } from '../../../../shared/registry/signature-bundle.ts';
import { signPayload } from '../../../../shared/registry/signature-envelope.ts';
import { writeManifest } from '../../../../shared/registry/signature-manifest.ts';
import { makeP256, signerOf } from '../../../shared/registry/people.ts';
import { openStore, sha256, temporary } from '../store/fixtures.ts';

const config = (text: string) => `parameters { key: "task" value { string_value: "infer" } } # ${text}`;
const contents = {
  'asr/config.pbtxt': config('any'),
  'asr/configs/linux-arm64.pbtxt': config('arm64'),
  'asr/configs/jetson.pbtxt': config('jetson'),
  'asr/labels.txt': 'a b c',
  'asr/builds/linux-amd64/1/model.plan': 'plan of amd64',
  'asr/builds/linux-arm64/1/model.plan': 'plan of arm64',
};
const files = Object.entries(contents).map(([name, text]) => ({
  ...{ name, digest: sha256(Buffer.from(text)), bytes: text.length },
  url: `data:application/octet-stream,${encodeURIComponent(text)}`,
}));
const digest = digestOfFiles(files);

describe('M7 builds of a revision', () => {
  it.each([
    ['linux-arm64', { 'asr/config.pbtxt': 'asr/configs/linux-arm64.pbtxt' }],
    ['linux-amd64', { 'asr/config.pbtxt': 'asr/config.pbtxt' }],
  ])('for %s stand in the place of shared files', (target, configs) => {
    const build = selectBuild(files, target);
    const places = build.ok && Object.fromEntries(build.value.files.map((file) => [placedName(file), file.name]));
    const own = `asr/builds/${target}/1/model.plan`;
    expect(places).toEqual({ ...configs, 'asr/labels.txt': 'asr/labels.txt', 'asr/1/model.plan': own });
    expect(build.ok && digestOfFiles([...build.value.files, ...build.value.others])).toBe(digest);
  });

  it('for no such target are refused by name', () => {
    const refusal = 'asr has no build for jetson, only for linux-amd64, linux-arm64';
    expect(selectBuild(files, 'jetson')).toEqual({ ok: false, refusal });
  });

  it('are not needed for a part that has none', () => {
    const plain = [{ name: 'm/config.pbtxt' }, { name: 'm/1/model.onnx' }];
    expect(selectBuild(plain, 'jetson')).toEqual({ ok: true, value: { files: plain, others: [] } });
  });
});

describe('M7 agents of two architectures', () => {
  it('fetch, verify and place their own build of one signed revision', async () => {
    const author = { name: 'ann', key: await makeP256() };
    const payload = writeManifest({ name: 'asr', hash: 'sha256', files, revision: digest });
    const bundle = makeBundle(await signPayload(payload, author.key));
    async function startAgent(target: string) {
      const [folder, repository, storeFolder] = [await temporary(), await temporary(), await temporary()];
      const store = await openStore({ folder: storeFolder });
      const fetchReleased = createReleased({
        ...{ signers: [signerOf(author)], store, disk: promises, folder, target, now: Date.now },
        call: async () => Response.json({ revision: digest, expires: Date.now() + 900_000, bundle, files }),
      });
      const engine = await EngineFolder.open({ folder: repository, store, disk: promises });
      return {
        catalog: () => promises.readdir(folder),
        stored: async () => (await promises.readdir(path.join(storeFolder, 'files'))).sort(),
        async load() {
          const known = await fetchReleased('asr', digest);
          const placed = await engine.place(known, known.source);
          if (!placed.ok) throw new Error(placed.refusal.detail);
          const own = path.join(repository, placed.value.names.get('asr') ?? '');
          const read = (name: string) => promises.readFile(path.join(own, name), 'utf8');
          return { plan: await read('1/model.plan'), all: (await promises.readdir(own)).sort() };
        },
      };
    }
    for (const target of ['linux-amd64', 'linux-arm64']) {
      const agent = await startAgent(target);
      const plan = `plan of ${target.slice('linux-'.length)}`;
      expect(await agent.load()).toEqual({ plan, all: ['1', 'config.pbtxt', 'labels.txt'] });
      expect(await agent.catalog()).toEqual([]);
      expect(await agent.stored()).toHaveLength(3);
      expect(await agent.stored()).toContain(sha256(Buffer.from(plan)));
    }
    await expect((await startAgent('jetson')).load()).rejects.toThrow('asr has no build for jetson');
  });
});
