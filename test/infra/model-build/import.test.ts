import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../infra/local/root.ts';
import { openArchive } from '../../../infra/pool/model-build/archive/open-archive.ts';
import { type Import, importModel } from '../../../infra/pool/model-build/import/import.ts';
import { readYaml } from '../../../infra/pool/model-build/import/yaml.ts';
import { folderForTest } from '../local/folder.ts';
import { charConfig, checkpointOf, type Entries, evil, nemoOf, onnxOf, stateDicts } from './sources.ts';

const config = ['model_config.yaml', charConfig] as const;
const weights = ['model_weights.ckpt', checkpointOf(stateDicts[2])] as const;

async function importNemo(files: Entries, form: Parameters<typeof nemoOf>[1] = {}, more: Partial<Import> = {}) {
  const folder = folderForTest();
  const source = path.join(folder, 'tiny.nemo');
  writeFileSync(source, nemoOf(files, form));
  const out = path.join(folder, 'tiny.amodel');
  const made = await importModel({ source, out, ...more }, {});
  return { made, out, left: readdirSync(folder).filter((name) => name !== 'tiny.nemo') };
}

describe('M1 develop: .nemo', () => {
  it.each([{}, { dots: true }, { packed: true }, { dots: true, packed: true }])('in the form %j', async (form) => {
    const { made, out } = await importNemo([config, weights], form);
    if (!made.ok) throw new Error(made.refusal.text);
    expect(made.value.manifest).toMatchObject({
      kind: 'model',
      name: 'tiny',
      classes: ['EncDecCTCModel'],
      settings: { sample_rate: '16000', ms_per_timestep: '40', blank: '4', word_boundary: '0' },
      parts: { config: 'nemo/model_config.yaml', vocabulary: 'tokens.txt' },
    });
    const archive = await openArchive(out, {});
    if (!archive.ok) throw new Error(archive.refusal.text);
    const read = async (name: string) => {
      const got = await archive.value.read(name);
      return got.ok ? Buffer.from(got.value) : got.refusal.text;
    };
    expect(await read('nemo/model_weights.ckpt')).toEqual(weights[1]);
    expect((await read('tokens.txt')).toString()).toBe("<space>\na\nb\n'\n<blank>\n");
    await archive.value.close();
  });

  it('any form of the source gives the same archive', async () => {
    const [one, two] = [
      await importNemo([config, weights]),
      await importNemo([weights, config], { dots: true, packed: true }),
    ];
    expect(readFileSync(one.out).equals(readFileSync(two.out))).toBe(true);
  });

  it.each([
    ['a checkpoint that calls', [config, ['model_weights.ckpt', checkpointOf(evil[2])]], 'unsafe'],
    ['a file of no known kind', [config, weights, ['run.sh', 'true']], 'unsafe'],
    ['no configuration', [weights], 'unreadable'],
    ['lists within lists', [['model_config.yaml', '['.repeat(100_000)], weights], 'unreadable'],
    ['a line without an end', [['model_config.yaml', `a: ${'x'.repeat(9 << 20)}`], weights], 'bound'],
    ['no weights', [config], 'unreadable'],
    ['no class', [['model_config.yaml', 'a: 1'], weights], 'unreadable'],
    ['M6 8 kHz', [['model_config.yaml', charConfig.replaceAll('16000', '8000')], weights], 'artifact'],
    [
      'a configuration with tags',
      [['model_config.yaml', `${charConfig}x: !!python/object:os.system {}\n`], weights],
      'unreadable',
    ],
  ] as [string, Entries, string][])('%s: refused, nothing left', async (_, files, kind) => {
    const { made, left } = await importNemo(files);
    expect(made).toMatchObject({ ok: false, refusal: { kind } });
    expect(left).toEqual([]);
  });

  it('in a place where no folder can be made', async () => {
    const folder = folderForTest();
    const source = path.join(folder, 'tiny.nemo');
    writeFileSync(source, nemoOf([config, weights]));
    // Without /proc, a folder below a file gives the same error.
    const places = [path.join(source, 'x', 'y'), ...(existsSync('/proc/self') ? ['/proc/auricle/x/y'] : [])];
    for (const out of places)
      expect(await importModel({ source, out }, {})).toMatchObject({
        refusal: { kind: 'unreadable', text: expect.stringContaining('cannot be made') },
      });
    const deep = path.join(folder, 'a', 'b', 'tiny.amodel');
    expect(await importModel({ source, out: deep }, {})).toMatchObject({ ok: true });
    expect(existsSync(deep)).toBe(true);
  });

  it('a damaged gzip, and an unknown format', async () => {
    const folder = folderForTest();
    const out = path.join(folder, 'a.amodel');
    const at = async (name: string, bytes: Uint8Array) => {
      writeFileSync(path.join(folder, name), bytes);
      const made = await importModel({ source: path.join(folder, name), out }, {});
      return made.ok ? 'ok' : made.refusal.kind;
    };
    expect(await at('a.nemo', nemoOf([config, weights], { packed: true }).subarray(0, 300))).toBe('damaged');
    expect(await at('a.h5', Buffer.from('x'))).toBe('unsupported');
    expect(await at('a.nemo', Buffer.from('x'.repeat(600)))).toBe('damaged');
    expect(existsSync(out)).toBe(false);
  });
});

describe('M1 develop: ONNX', () => {
  const place = (options: Parameters<typeof onnxOf>[0] = {}) => {
    const folder = folderForTest();
    writeFileSync(path.join(folder, 'n.onnx'), onnxOf(options));
    writeFileSync(path.join(folder, 'w.bin'), Buffer.alloc(16, 7));
    writeFileSync(path.join(folder, 'labels.csv'), 'O\nPER\n');
    return folder;
  };

  it('tensors, weights beside it, further files', async () => {
    const folder = place({ location: 'w.bin' });
    const out = path.join(folder, 'n.amodel');
    const made = await importModel(
      {
        source: path.join(folder, 'n.onnx'),
        out: `${out}:key`,
        classes: ['TokenClassificationModel'],
        parts: { class_labels: path.join(folder, 'labels.csv') },
        plain: ['labels.csv'],
        cipher: 'sm4-ctr-hmac-sm3',
      },
      {},
    );
    if (!made.ok) throw new Error(made.refusal.text);
    expect(made.value.manifest).toMatchObject({
      graphs: [
        {
          role: 'network',
          artifact: 'network/model.onnx',
          external: ['network/w.bin'],
          batched: true,
          precision: 'fp32',
          input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [4] }],
          output: [{ name: 'Y', data_type: 'TYPE_FP32', dims: [4] }],
        },
      ],
      parts: { class_labels: 'labels.csv' },
      seal: { cipher: 'sm4-ctr-hmac-sm3' },
    });
    expect(made.value.manifest.artifacts.map(({ name, nonce }) => [name, nonce !== undefined])).toEqual([
      ['labels.csv', false],
      ['network/model.onnx', true],
      ['network/w.bin', true],
    ]);
  });

  it('an unknown operator', async () => {
    const folder = place({ domain: 'evil', operator: 'Run' });
    const made = await importModel({ source: path.join(folder, 'n.onnx'), out: path.join(folder, 'n.amodel') }, {});
    expect(made).toMatchObject({ refusal: { kind: 'unsafe' } });
    expect(readdirSync(folder)).not.toContain('n.amodel');
  });
});

describe('M1 develop: a Triton repository', () => {
  it('the reference model with its half for live streams', async () => {
    const out = path.join(folderForTest(), 'reference-en.amodel');
    const source = path.join(ROOT, 'infra/pool/models/repository/reference-en');
    const made = await importModel({ source, out }, {});
    if (!made.ok) throw new Error(made.refusal.text);
    const { graphs, flows, settings, parts } = made.value.manifest;
    expect(graphs.map(({ role, precision }) => [role, precision])).toEqual([
      ['vad_preprocess', 'fp32'],
      ['asr_inference', 'int8'],
      ['nlp_postprocess', 'fp32'],
      ['vad_preprocess_stream', 'fp32'],
      ['asr_stream', 'int8'],
    ]);
    expect(flows.map(({ suffix, step }) => [suffix, step.map(({ role }) => role)])).toEqual([
      ['', ['vad_preprocess', 'asr_inference', 'nlp_postprocess']],
      ['stream', ['vad_preprocess_stream', 'asr_stream', 'nlp_postprocess']],
    ]);
    expect(graphs[0]).toMatchObject({ batch_input: [{ target_name: 'AUDIO_OFFSETS' }], input: [{ ragged: true }, {}] });
    expect(graphs[4]?.state).toHaveLength(6);
    expect(settings).toMatchObject({
      language_code: 'en',
      ms_per_timestep: '40',
      chunk_size: '0.32',
      overlap_milliseconds: '15',
    });
    expect(parts).toEqual({ vocabulary: 'tokens.txt', lexicon: 'lexicon.txt.gz', language_model: 'words.lm.gz' });
  });
});

describe('YAML of a configuration', () => {
  const read = (text: string) => {
    const value = readYaml(text, 'c');
    return value.ok ? value.value : value.refusal.text;
  };
  it.each([
    ['a: 1\nb: 1e-3\nc: -.5\nd: "x: y # z"\n', { a: 1, b: 1e-3, c: -0.5, d: 'x: y # z' }],
    ['a: null\nb: ~\nc:\nd: true # note\n', { a: null, b: null, c: null, d: true }],
    ['a:\n- 1\n- two\nb: [1, [2, x], {c: d}]\n', { a: [1, 'two'], b: [1, [2, 'x'], { c: 'd' }] }],
    ['a:\n  - b: 1\n    c:\n      d: 2\n  - b: 3\n', { a: [{ b: 1, c: { d: 2 } }, { b: 3 }] }],
    ["a: 'it''s'\nb: \"\\u0041\\n\"\n", { a: "it's", b: 'A\n' }],
    ['a: [x,\n  y]\nb: \u0024{c.d}/e:f\n', { a: ['x', 'y'], b: '\u0024{c.d}/e:f' }],
    ['a: |\n  one\n  two\nb: >-\n  three\n', { a: 'one\ntwo\n', b: 'three' }],
    ['- 1\n- - 2\n  - 3\n', [1, [2, 3]]],
    ['', null],
  ])('%j', (text, value) => expect(read(text)).toEqual(value));

  it.each([
    'a: &x 1',
    'a: *x',
    'a: !!int 1',
    'a: 1\na: 2',
    'a: 1\n---\nb: 2',
    '\ta: 1',
    'a: [1',
    `a: ${'[{b: '.repeat(40)}`,
    'a: "x',
    "a: 'x''",
    '"a',
    'a: 1\n   b: 2\n  c: 3\n x',
  ])('%j is refused', (text) => expect(read(text)).toMatch(/^c, line \d/));
});
