import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../infra/cli/models/build.ts';
import { folderForTest } from '../local/folder.ts';
import { onnxOf } from '../model-build/sources.ts';

const auricle = (...words: string[]) => buildModel(words);

it('M2 M3 import, build, inspect, deploy: an exit code for each problem', async () => {
  const folder = folderForTest();
  const at = (name: string) => path.join(folder, name);
  writeFileSync(at('n.onnx'), onnxOf());
  writeFileSync(at('evil.onnx'), onnxOf({ domain: 'evil' }));
  writeFileSync(at('vocab.txt'), 'one\n');
  const given = ['--class', 'QAModel', '--artifact', `vocab=${at('vocab.txt')}`];
  const exits = async (...words: string[]) => (await auricle(...words)).exit;

  expect(await exits('import', at('n.onnx'), '--out', `${at('n.amodel')}:k`, ...given)).toBe(0);
  expect(await exits('import', at('n.onnx'), '--out', at('n.amodel'), ...given)).toBe(7);
  expect(await exits('import', at('evil.onnx'), '--out', at('e.amodel'))).toBe(8);
  expect(await exits('import', at('none.onnx'), '--out', at('e.amodel'))).toBe(3);
  expect(await exits('import', at('n.onnx'))).toBe(2);

  mkdirSync(at('rmir'));
  const out = at('rmir/qa.apipeline');
  const source = `${at('n.amodel')}:k`;
  expect(await exits('build', 'qa', out, `${at('n.amodel')}:wrong`)).toBe(4);
  expect(await exits('build', 'qa', out, at('n.amodel'))).toBe(5);
  expect(await exits('build', 'punctuation', out, source)).toBe(9);
  expect(await exits('build', 'qa', out, source, '--vad_type=silero')).toBe(11);
  expect(await exits('build', 'speech_recognition', out, source, '--chunk_size=0.1')).toBe(9);
  expect(readdirSync(at('rmir'))).toEqual([]);
  expect(await exits('build', 'qa', out, source, '--name=answers')).toBe(0);
  expect((await auricle('inspect', out)).value).toMatchObject({ manifest: { name: 'answers', pipeline: 'qa' } });

  expect(await exits('deploy', out, at('models'), '--target', 'tpu')).toBe(2);
  expect(await exits('deploy', out, at('models'), '--target', 'cpu')).toBe(0);
  expect(await exits('deploy', out, at('models'))).toBe(7);
  expect(readdirSync(at('models')).sort()).toEqual(['answers', 'answers-network']);
});

it('M4 every archive of a folder; what is deployed already stays', async () => {
  const folder = folderForTest();
  const at = (name: string) => path.join(folder, name);
  writeFileSync(at('n.onnx'), onnxOf());
  writeFileSync(at('vocab.txt'), 'one\n');
  await auricle(
    'import',
    at('n.onnx'),
    '--out',
    at('n.amodel'),
    '--class=QAModel',
    '--artifact',
    `vocab=${at('vocab.txt')}`,
  );
  for (const name of ['one', 'two'])
    await auricle('build', 'qa', at(`rmir/${name}.apipeline`), at('n.amodel'), `--name=${name}`);
  const init = () => auricle('init', '--archives', at('rmir'), '--models', at('models'));
  expect(await init()).toMatchObject({ exit: 0, value: { models: [{ name: 'one' }, { name: 'two' }], kept: [] } });
  expect(await init()).toMatchObject({ exit: 0, value: { models: [], kept: ['one.apipeline', 'two.apipeline'] } });
  expect(readdirSync(at('models')).sort()).toEqual(['one', 'one-network', 'two', 'two-network']);
});

it('M2 the example of the README does what it says', async () => {
  const folder = folderForTest();
  const readme = readFileSync(new URL('../../../infra/pool/model-build/README.md', import.meta.url), 'utf8');
  const block = /With the shipped model[^`]*```\n([^`]*)```/.exec(readme)?.[1] ?? '';
  const lines = block.trimEnd().split('\n');
  expect(lines.at(-1)).toBe('npm start -- --models models');
  const own = (word: string) => (/^(en\.|models$)/.test(word) ? path.join(folder, word) : word);
  for (const line of lines.slice(0, -1)) {
    const [npx, tool, model, ...words] = line.split(' ');
    expect([npx, tool, model]).toEqual(['npx', 'auricle', 'model']);
    expect(await auricle(...words.map(own)), line).toMatchObject({ exit: 0 });
  }
  expect(readdirSync(path.join(folder, 'models'))).toContain('own-en');
});

it('M2 a whole repository differs from one of its models', async () => {
  const { exit, text } = await auricle('import', 'infra/pool/models/repository', '--out', 'never.amodel');
  expect([exit, text]).toEqual([3, expect.stringMatching(/import one of .*asr_inference, .*reference-en, .*voice-en/)]);
});

it('M2 help lists the options of a pipeline, and every exit code', async () => {
  expect((await auricle('build', 'speech_recognition', '-h')).text).toContain('--chunk_size=SECONDS');
  const { exit, text } = await auricle('import', '--help');
  expect([exit, text]).toEqual([0, expect.stringMatching(/ 4 {2}key: [\s\S]* 10 {2}timing: /)]);
});
