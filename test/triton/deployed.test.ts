// Output of `auricle model deploy` against the real Triton and its own schema.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../infra/pool/model-build/build/build.ts';
import { readCommand } from '../../infra/pool/model-build/build/read-command.ts';
import { deploy } from '../../infra/pool/model-build/deploy/deploy.ts';
import { readTarget } from '../../infra/pool/model-build/deploy/targets.ts';
import { importModel } from '../../infra/pool/model-build/import/import.ts';
import { parseText } from '../../infra/pool/models/config/parse-text.ts';
import { findPython } from '../../infra/pool/triton/find-python.ts';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertModel, convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { fp32Tensor, int32Tensor } from '../../shared/kserve/tensor.ts';
import { floats, infer } from '../contract/engine/client.ts';
import { folder as installation, schemaFolder } from './install.ts';

const shipped = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');
const examples = path.resolve(shipped, '../examples');
let folder: string;
let triton: Triton;

const madeOf = <T>(made: { ok: true; value: T } | { ok: false; refusal: { text: string } }): T => {
  if (!made.ok) throw new Error(made.refusal.text);
  return made.value;
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  const at = (name: string) => path.join(folder, name);
  madeOf(await importModel({ source: path.join(shipped, 'reference-en'), out: at('r.amodel') }, {}));
  const command = readCommand(['speech_recognition', at('r.apipeline'), at('r.amodel'), '--name=rebuilt-en']);
  madeOf(await build(madeOf(command), {}));
  const targets = ['cpu', 'gpu', 'mig:1g.10gb', 'jetson'].map((name) => madeOf(readTarget(name, {})));
  madeOf(await deploy({ archives: [at('r.apipeline')], repository: at('models'), targets }, {}));
  await convertRepository(at('models'), at('python'));
  for (const name of ['reference-en', 'vad_preprocess', 'asr_inference', 'nlp_postprocess']) {
    await convertModel(shipped, at('python'), name);
  }
  const models = ['rebuilt-en', 'reference-en'];
  triton = await startTriton({
    installed: await installTriton({ folder: installation }),
    repository: at('python'),
    models,
  });
});
afterAll(async () => {
  await triton?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('M3 a deployed repository', () => {
  it('T2 answers on Triton like the model it was made from', async () => {
    const sound = Float32Array.from({ length: 24_000 }, (_, i) => 0.3 * Math.sin(i * i * 2e-6));
    const inputs = [
      fp32Tensor('AUDIO', sound, [1, sound.length]),
      int32Tensor('AUDIO_LENGTH', Int32Array.of(sound.length), [1, 1]),
    ];
    const [rebuilt, original] = await Promise.all(
      ['rebuilt-en', 'reference-en'].map((model) => infer(triton, model, inputs)),
    );
    if (!rebuilt || !original) throw new Error('no answer');
    expect(floats(rebuilt, 'LOG_PROBS').length).toBeGreaterThan(1000);
    expect(floats(rebuilt, 'LOG_PROBS')).toEqual(floats(original, 'LOG_PROBS'));
  });

  it('every configuration parses by Triton’s model_config.proto to the same values', async () => {
    const listed = await Promise.all(
      [path.join(folder, 'models'), examples].map(async (place) => {
        const found = await readdir(place, { recursive: true });
        return found.filter((file) => file.endsWith('.pbtxt')).map((file) => path.join(place, file));
      }),
    );
    expect(listed.map(({ length }) => length)).toEqual([7 * 4, 5]);
    const files = listed.flat();
    const script = path.join(import.meta.dirname, 'schema.py');
    const python = await findPython();
    if ('problem' in python) throw new Error(python.problem);
    const { stdout } = await promisify(execFile)(python.executable, [script, schemaFolder, ...files], {
      maxBuffer: 2 ** 26,
    });
    const theirs = JSON.parse(stdout) as string[];
    for (const [at, file] of files.entries()) {
      const [ours, read] = [parseText(await readFile(file, 'utf8')), parseText(theirs[at] ?? '')];
      expect(ours.ok, file).toBe(true);
      expect(read, file).toEqual(ours);
    }
  });
});
