// Attacks by imported files: paths and links out of the folder, code under another name, names that reach
// another version, and unbounded sizes.
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { loadNetwork } from '../../../infra/pool/engine/model/load-network.ts';
import type { ModelFiles } from '../../../infra/pool/engine/model/read-model.ts';
import type { Graph, Head } from '../../../infra/pool/model-build/archive/manifest.ts';
import { type Source, writeArchive } from '../../../infra/pool/model-build/archive/write-archive.ts';
import { deploy } from '../../../infra/pool/model-build/deploy/deploy.ts';
import { readTarget } from '../../../infra/pool/model-build/deploy/targets.ts';
import { importModel } from '../../../infra/pool/model-build/import/import.ts';
import { scanRevision } from '../../../infra/pool/model-build/measure/scan-revision.ts';
import { scanFile } from '../../../infra/pool/model-build/scan/scan.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { emptyMessage } from '../../../infra/pool/models/config/value.ts';
import { encodeModel } from '../../contract/engine/onnx-writer.ts';
import { folderForTest } from '../local/folder.ts';
import { blobOf, checkpointOf, evil, hex, onnxOf, stateDicts } from './sources.ts';

let folder: string;
const at = (...name: string[]) => path.join(folder, ...name);
beforeEach(() => {
  folder = folderForTest();
});

function put(name: string, content: string | Uint8Array): string {
  mkdirSync(path.dirname(at(name)), { recursive: true });
  writeFileSync(at(name), content);
  return at(name);
}

const kindOf = (made: { ok: boolean; refusal?: { kind: string } }) => (made.ok ? 'ok' : made.refusal?.kind);

const NETWORK = `platform: "onnxruntime_onnx" max_batch_size: 4
  input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }`;
const parameter = (key: string, value: string) => `parameters { key: "${key}" value { string_value: "${value}" } }`;
const step = (model: string) =>
  `platform: "ensemble" ensemble_scheduling { step { model_name: "${model}" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }
  input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }`;

describe('C7 M2 import reads nothing outside its folder', () => {
  /** A model that imports as it is, beside a secret, and a network and a model outside of the repository. */
  function place(more: string, network = onnxOf()) {
    put('secret.txt', 'a key of somebody else\n');
    put('outside/1/model.onnx', onnxOf());
    put('outside/config.pbtxt', NETWORK);
    put('models/m/1/model.onnx', network);
    put('models/m/config.pbtxt', `${NETWORK} ${more}`);
  }
  const imported = async () => kindOf(await importModel({ source: at('models/m'), out: at('m.amodel') }, {}));

  it('accepts a model with files of its own', async () => {
    place(parameter('vocabulary', 'tokens.txt'));
    put('models/m/tokens.txt', 'a\n');
    expect(await imported()).toBe('ok');
  });

  it.each<[string, () => void]>([
    ['an absolute path', () => place(parameter('vocabulary', at('secret.txt')))],
    ['a path upwards', () => place(parameter('lexicon', '../../secret.txt'))],
    [
      'a symbolic link',
      () => {
        place(parameter('vocabulary', 'tokens.txt'));
        symlinkSync(at('secret.txt'), at('models/m/tokens.txt'));
      },
    ],
    [
      'a hard link',
      () => {
        place(parameter('vocabulary', 'tokens.txt'));
        linkSync(at('secret.txt'), at('models/m/tokens.txt'));
      },
    ],
    ['a network upwards', () => place('default_model_filename: "../../../outside/1/model.onnx"')],
    [
      'a network of another version',
      () => {
        place('default_model_filename: "../1/model.onnx"');
        put('models/m/2/model.onnx', onnxOf());
      },
    ],
    [
      'a linked version',
      () => {
        place('');
        symlinkSync(at('outside/1'), at('models/m/2'));
      },
    ],
    [
      'linked weights',
      () => {
        place('', onnxOf({ location: 'w.bin' }));
        put('w.bin', Buffer.alloc(16));
        linkSync(at('w.bin'), at('models/m/1/w.bin'));
      },
    ],
    [
      'a step upwards',
      () => {
        place('');
        put('models/m/config.pbtxt', step('../outside'));
      },
    ],
    [
      'a step that is a link',
      () => {
        place('');
        put('models/m/config.pbtxt', step('n'));
        symlinkSync(at('outside'), at('models/n'));
      },
    ],
    ['a live half upwards', () => place(parameter('stream_model', '../outside'))],
    [
      'a linked configuration',
      () => {
        place('');
        put('models/l/1/model.onnx', onnxOf());
        symlinkSync(at('outside/config.pbtxt'), at('models/l/config.pbtxt'));
        put('models/m/config.pbtxt', step('l'));
      },
    ],
  ])('refuses %s', async (_, make) => {
    make();
    expect(await imported()).toBe('unsafe');
    expect(existsSync(at('m.amodel'))).toBe(false);
  });
});

const GRAPH: Graph = {
  ...{ role: 'network', artifact: 'network/model.onnx', external: [], batched: true, precision: 'fp32' },
  input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [4] }],
  output: [{ name: 'Y', data_type: 'TYPE_FP32', dims: [4] }],
  ...{ batch_input: [], state: [], control: [] },
};

interface Crafted {
  readonly name?: string;
  readonly graph?: Partial<Graph>;
  readonly parts?: Record<string, string>;
  readonly files?: Record<string, string | Uint8Array>;
}

/** A pipeline that `build` did not write. */
async function craft({ name = 'x', graph = {}, parts = {}, files = {} }: Crafted): Promise<string> {
  const head: Head = {
    ...{ format: 'auricle-archive/1', kind: 'pipeline', name, pipeline: 'token_classification' },
    ...{ classes: [], graphs: [{ ...GRAPH, ...graph }], flows: [], settings: {}, parts },
  };
  const all = { 'network/model.onnx': onnxOf(), ...files };
  const sources = Object.entries(all).map(([file, content]): Source => ({ name: file, content: Buffer.from(content) }));
  const made = await writeArchive(at(`${name}.apipeline`), { head, sources }, true);
  if (!made.ok) throw new Error(made.refusal.text);
  return at(`${name}.apipeline`);
}

async function deployed(archives: readonly string[], force = false) {
  const target = readTarget('cpu', {});
  if (!target.ok) throw new Error(target.refusal.text);
  return kindOf(await deploy({ archives, repository: at('models'), targets: [target.value], force }, {}));
}

describe('C7 M3 deploy scans the files that it places', () => {
  it('accepts files that pass the first gate', async () => {
    const weights = { 'network/w.bin': Buffer.alloc(16), 'v/vocab.txt': 'a\n', 'w.pt': checkpointOf(stateDicts[2]) };
    const files = { 'network/model.onnx': onnxOf({ location: 'w.bin' }), ...weights };
    const parts = { vocab: 'v/vocab.txt', class_labels: 'w.pt' };
    expect(await deployed([await craft({ graph: { external: ['network/w.bin'] }, parts, files })])).toBe('ok');
  });

  it.each<[string, Crafted]>([
    [
      'an operator that runs Python',
      { files: { 'network/model.onnx': onnxOf({ operator: 'PythonOp', domain: 'com.microsoft' }) } },
    ],
    ['weights at an absolute path', { files: { 'network/model.onnx': onnxOf({ location: '/etc/passwd' }) } }],
    ['a pickle that calls', { parts: { vocab: 'vocab.pkl' }, files: { 'vocab.pkl': evil[2] } }],
    ['a Python backend', { parts: { vocab: 'model.py' }, files: { 'model.py': 'import os\n' } }],
    ['a binary as a text', { parts: { vocab: 'vocab.txt' }, files: { 'vocab.txt': '\x7fELF\x00' } }],
    ['a library as weights', { graph: { external: ['network/op.so'] }, files: { 'network/op.so': '\x7fELF\x00' } }],
  ])('refuses %s', async (_, crafted) => {
    expect(await deployed([await craft(crafted)])).toBe('unsafe');
    expect(existsSync(at('models'))).toBe(false);
  });

  it.each([
    'backend: "python" default_model_filename: "notes.txt"',
    `${NETWORK} model_operations { op_library_filename: "/tmp/op.so" }`,
    `${NETWORK} model_repository_agents { agents { name: "run" } }`,
    `${NETWORK} default_model_filename: "../../outside.onnx"`,
    `${NETWORK} ${parameter('vocabulary', '../../secret.txt')}`,
    `${NETWORK} ${parameter('vocabulary', '../other/tokens.txt')}`,
    step('../outside'),
  ])('its rules cover configurations: %s', async (config) => {
    put('m/config.pbtxt', config);
    put('m/1/notes.txt', 'import os\n');
    const revision = { repository: folder, files: ['m/config.pbtxt', 'm/1/notes.txt'] };
    const model = { description: { revision: 'sha256:0' } } as Parameters<typeof scanRevision>[0]['model'];
    expect(await scanRevision({ ...revision, model }, 't')).toMatchObject({ verdict: 'FAIL' });
  });

  it.each([
    ['../other/tokens.txt', 'other/tokens.txt', 'PASS'],
    ['../../secret.txt', '../secret.txt', 'FAIL'],
  ])('a part %s of the revision, at %s of the repository: %s', async (part, file, verdict) => {
    put('models/m/config.pbtxt', `${NETWORK} ${parameter('vocabulary', part)}`);
    put(`models/${file}`, 'a\n');
    const model = { description: { revision: 'sha256:0' } } as Parameters<typeof scanRevision>[0]['model'];
    const revision = { repository: at('models'), files: [file, 'm/config.pbtxt'], model };
    expect(await scanRevision(revision, 't')).toMatchObject({ verdict });
  });
});

describe('C7 M3 a name reaches no other version', () => {
  it('a file: weights stay in the version of their network', async () => {
    // After the eight letters of "network/" the path leads upwards.
    const external = ['abcdefgh../2/model.onnx'];
    const files = { 'abcdefgh../2/model.onnx': onnxOf() };
    expect(await deployed([await craft({ graph: { external }, files })])).toBe('unsafe');
  });

  it.each(['config.pbtxt', 'auricle-deployed.json', 'CONFIG.PBTXT', '1'])('a part called %s', async (name) => {
    expect(await deployed([await craft({ parts: { vocab: name }, files: { [name]: '{}\n' } })])).toBe('artifact');
  });

  it('two pipelines with one folder name, also after case folding', async () => {
    const one = await craft({ name: 'a', graph: { role: 'b-c' } });
    const other = await craft({ name: 'a-b', graph: { role: 'c' } });
    expect(await deployed([one])).toBe('ok');
    const before = readFileSync(at('models/a-b-c/auricle-deployed.json'));
    expect(await deployed([other], true)).toBe('exists');
    expect(readFileSync(at('models/a-b-c/auricle-deployed.json'))).toEqual(before);
    expect(await deployed([one], true)).toBe('ok');
    const folded = await craft({ name: 'A-B', graph: { role: 'C' } });
    expect(await deployed([await craft({ name: 'a-b', graph: { role: 'c' } }), folded], true)).toBe('artifact');
  });

  it('a network that an engine would load', async () => {
    put('m/1/model.onnx', onnxOf());
    put('m/2/model.onnx', 'no network');
    const config = { ...emptyMessage('ModelConfig'), default_model_filename: '../2/model.onnx' };
    const files = { directory: at('m'), config, versions: [1], fingerprint: '' } as ModelFiles;
    const statistics = {} as Parameters<typeof loadNetwork>[2];
    expect(await loadNetwork(files, 1, statistics, 1)).toMatchObject({
      refusal: { reason: expect.stringContaining('leaves the version') },
    });
  });
});

describe('C7 M2 strings and pickles without end', () => {
  const LONG = 'a'.repeat(200_000);

  it('a configuration with 200 KB strings ends in a verdict', () => {
    expect(parseText(`name: "${LONG}"`)).toMatchObject({ ok: true, value: { name: LONG } });
    for (const text of [`name: "${LONG}`, `${LONG}: 1`, `name: ${LONG}`, `max_batch_size: ${LONG}`]) {
      const read = parseText(text);
      expect(read).toMatchObject({ ok: false });
      expect(read.ok || read.refusal.reason.length < 400).toBe(true);
    }
    const list = parseText(`input { dims: [${'1,'.repeat(200_000)}1] }`);
    expect(list.ok && list.value.input[0]?.dims).toHaveLength(200_001);
    expect(parseText('#'.repeat(2 << 20))).toMatchObject({ ok: false });
  });

  it('refuses a tensor name of 200 KB before writing anything', async () => {
    const value = (name: string) => ({ name, type: 'FLOAT', dims: ['N', 4] }) as const;
    const nodes = [{ op: 'Identity', inputs: ['X'], outputs: [LONG] }];
    const source = put('n.onnx', encodeModel({ nodes, inputs: [value('X')], outputs: [value(LONG)] }));
    const made = await importModel({ source, out: at('n.amodel') }, {});
    expect(made).toMatchObject({ refusal: { kind: 'bound' } });
    expect(readdirSync(folder)).toEqual(['n.onnx']);
  });

  it('refuses a 30 MB pickle by size and a smaller one by steps', async () => {
    const pickle = (bytes: number) => Buffer.concat([hex('8004'), Buffer.alloc(bytes, 0x4e), hex('2e')]);
    expect(kindOf(await scanFile(await blobOf('w.pt', checkpointOf(pickle(30 << 20)))))).toBe('bound');
    expect(kindOf(await scanFile(await blobOf('w.pt', checkpointOf(pickle(5 << 20)))))).toBe('bound');
  });

  it('a refusal quotes a bounded part of a name without control characters', async () => {
    const name = Buffer.from(`c${'a\x1b[2Jb'.repeat(40_000)}\nx\n.`);
    const found = await scanFile(await blobOf('w.pt', checkpointOf(Buffer.concat([hex('8002'), name]))));
    const text = found.ok ? '' : found.refusal.text;
    expect(text).toContain('bytes)');
    expect(text.length).toBeLessThan(1_100);
    const file = await scanFile(await blobOf(`\x1b[2J${LONG}.sh`, 'x'));
    expect(file.ok ? '' : file.refusal.text).toMatch(/^[^\p{Cc}]{1,1100}$/u);
  });
});
