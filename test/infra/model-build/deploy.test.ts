import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../infra/local/root.ts';
import { readRepository } from '../../../infra/pool/agent/models/models.ts';
import { openArchive } from '../../../infra/pool/model-build/archive/open-archive.ts';
import { build } from '../../../infra/pool/model-build/build/build.ts';
import { readCommand } from '../../../infra/pool/model-build/build/read-command.ts';
import { deploy } from '../../../infra/pool/model-build/deploy/deploy.ts';
import { planRepository } from '../../../infra/pool/model-build/deploy/plan-repository.ts';
import { readTarget } from '../../../infra/pool/model-build/deploy/targets.ts';
import { importModel } from '../../../infra/pool/model-build/import/import.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { printText } from '../../../infra/pool/models/config/print-text.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';
import { floats, infer } from '../../contract/engine/client.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import type { Started } from '../../contract/engine/implementation.ts';
import { temporaryFolder } from '../local/folder.ts';

const shipped = path.join(ROOT, 'infra/pool/models/repository');
const scratch = temporaryFolder();
const at = (name: string) => path.join(scratch.path, name);
const madeOf = <T>(made: { ok: true; value: T } | { ok: false; refusal: { kind: string; text: string } }): T => {
  if (!made.ok) throw new Error(`${made.refusal.kind}: ${made.refusal.text}`);
  return made.value;
};
const target = (name: string, more: Parameters<typeof readTarget>[1] = {}) => madeOf(readTarget(name, more));
const run = async (...words: string[]) => build(madeOf(readCommand(words)), {});

/** Serves the deployed model and its source. */
let engine: Started;

beforeAll(async () => {
  for (const name of ['reference-en', 'voice-en']) {
    madeOf(await importModel({ source: path.join(shipped, name), out: `${at(`${name}.amodel`)}:k1` }, {}));
  }
  madeOf(
    await run(
      'speech_recognition',
      `${at('reference-en.apipeline')}:k2`,
      `${at('reference-en.amodel')}:k1`,
      '--name=rebuilt-en',
    ),
  );
  madeOf(await run('speech_synthesis', at('voice-en.apipeline'), `${at('voice-en.amodel')}:k1`));
  madeOf(
    await deploy(
      {
        archives: [`${at('reference-en.apipeline')}:k2`, at('voice-en.apipeline')],
        repository: at('models'),
        targets: [target('cpu'), target('gpu', { gpus: '0,1,2,3' }), target('mig:3g.40gb'), target('jetson')],
      },
      {},
    ),
  );
  cpSync(at('models'), at('both'), { recursive: true });
  for (const name of ['reference-en', 'vad_preprocess', 'asr_inference', 'nlp_postprocess']) {
    cpSync(path.join(shipped, name), path.join(at('both'), name), { recursive: true });
  }
  engine = await startEmbedded(at('both'), ['rebuilt-en', 'rebuilt-en-stream', 'reference-en']);
  // Six keys are derived and seven networks loaded: longer than other hooks where the machine is busy.
}, 60_000);
afterAll(async () => {
  await engine?.stop();
  scratch.remove();
});

const sound = (samples: number) => Float32Array.from({ length: samples }, (_, i) => 0.3 * Math.sin(i * i * 2e-6));
const audio = (samples: Float32Array) => [
  fp32Tensor('AUDIO', samples, [1, samples.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
];

describe('M1 M3 the reference model imported, built and deployed', () => {
  it('answers like the original', async () => {
    const [one, two] = await Promise.all(
      ['rebuilt-en', 'reference-en'].map((model) => infer(engine, model, audio(sound(30_000)))),
    );
    if (!one || !two) throw new Error('no answer');
    expect(floats(one, 'LOG_PROBS')).toEqual(floats(two, 'LOG_PROBS'));
    expect(floats(one, 'LOG_PROBS').length).toBeGreaterThan(1000);
  });

  it('A5 windows of a sequence give the result of the whole', async () => {
    const spoken = sound(16_000).slice(0, 15_600);
    const heard: number[] = [];
    for (const [n, from] of [0, 5120, 10_240].entries()) {
      const parameters = { sequence_id: 7, sequence_start: n === 0, sequence_end: n === 2 };
      const part = await infer(engine, 'rebuilt-en-stream', audio(spoken.slice(from, from + 5360)), { parameters });
      heard.push(...floats(part, 'LOG_PROBS').slice(0, 8 * 29));
    }
    const whole = floats(await infer(engine, 'reference-en', audio(spoken)), 'LOG_PROBS');
    expect(heard.length).toBe(whole.length);
    for (const [at, value] of heard.entries()) expect(Math.exp(value)).toBeCloseTo(Math.exp(whole[at] ?? 0), 4);
  });

  it('holds the same networks, byte by byte', () => {
    for (const [model, original] of [
      ['rebuilt-en-asr_stream', 'asr_stream'],
      ['voice-en-voice-en', 'voice-en'],
    ] as const) {
      const bytes = (folder: string) => readFileSync(path.join(folder, '1/model.onnx'));
      expect(bytes(path.join(at('models'), model)).equals(bytes(path.join(shipped, original)))).toBe(true);
    }
  });

  it('the agent reads them by their type', async () => {
    const broken: string[] = [];
    const models = await readRepository(at('models'), {
      now: 0,
      onBroken: (model, detail) => broken.push(`${model}: ${detail}`),
    });
    expect(broken).toEqual([]);
    expect(
      models.map(({ description: { name, task, precision, languages } }) => [name, task, precision, languages]),
    ).toEqual([
      ['rebuilt-en', 'transcribe', 'int8', ['en']],
      ['rebuilt-en-stream', 'infer', 'int8', ['en']],
      ['voice-en', 'synthesize', 'int8', ['en']],
    ]);
    expect(models[0]?.live).toEqual({ model: 'rebuilt-en-stream', windowSamples: 5360, hopSamples: 5120 });
  });
});

const configs = () =>
  readdirSync(at('models'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.pbtxt'));

describe('M3 configurations', () => {
  it('each reads back and is written again the same', () => {
    expect(configs().length).toBe(9 * 4);
    for (const file of configs()) {
      const text = readFileSync(path.join(at('models'), file), 'utf8');
      expect(printText(readOf(parseText(text))), file).toBe(text);
    }
  });

  const configOf = (model: string, target?: string) =>
    readOf(
      parseText(
        readFileSync(path.join(at('models'), model, target ? `configs/${target}.pbtxt` : 'config.pbtxt'), 'utf8'),
      ),
    );

  it('A10 one instance on each of four GPUs', () => {
    expect(configOf('rebuilt-en-asr_inference', 'gpu').instance_group).toMatchObject([
      { kind: 'KIND_GPU', count: 1, gpus: [0, 1, 2, 3] },
    ]);
    expect(configOf('rebuilt-en-asr_inference').instance_group).toMatchObject([
      { kind: 'KIND_CPU', count: 1, gpus: [] },
    ]);
  });

  it('A3 an accelerator for each target, none for 8-bit weights', () => {
    const named = (model: string, target?: string) => {
      const { gpu_execution_accelerator: gpu = [], cpu_execution_accelerator: cpu = [] } =
        configOf(model, target).optimization?.execution_accelerators ?? {};
      return [...gpu, ...cpu].map(({ name, parameters }) => [name, parameters.precision_mode]);
    };
    expect(named('rebuilt-en-nlp_postprocess', 'gpu')).toEqual([['tensorrt', 'FP16']]);
    expect(named('rebuilt-en-nlp_postprocess')).toEqual([['openvino', undefined]]);
    expect(named('rebuilt-en-asr_inference', 'gpu')).toEqual([]);
    expect(configOf('rebuilt-en-asr_inference', 'gpu').optimization?.input_pinned_memory).toEqual({ enable: true });
    expect(configOf('rebuilt-en-asr_inference', 'jetson').optimization?.input_pinned_memory).toBeUndefined();
  });

  it('batches that the target can hold, each size warmed up', () => {
    const sizes = (model: string, target?: string) => {
      const { max_batch_size, model_warmup } = configOf(model, target);
      return [max_batch_size, model_warmup.map(({ batch_size }) => batch_size)];
    };
    expect(sizes('rebuilt-en-asr_inference', 'gpu')).toEqual([32, [1, 2, 4, 8, 16, 32]]);
    expect(sizes('rebuilt-en-asr_inference', 'mig-3g.40gb')).toEqual([8, [1, 2, 4, 8]]);
    expect(sizes('rebuilt-en-asr_inference', 'jetson')).toEqual([8, [1, 2, 4, 8]]);
    expect(sizes('rebuilt-en-asr_inference')).toEqual([32, [1, 32]]);
    expect(configOf('rebuilt-en', 'jetson').max_batch_size).toBe(8);
  });

  it('dynamic batching, or sequences where the network remembers', () => {
    expect(configOf('rebuilt-en-asr_inference').dynamic_batching).toMatchObject({ priority_levels: 4 });
    expect(configOf('rebuilt-en-asr_stream').sequence_batching?.state).toHaveLength(6);
    expect(configOf('rebuilt-en-asr_stream').dynamic_batching).toBeUndefined();
  });

  it('R1 A18 streams get a front end separate from recordings', async () => {
    const opened = madeOf(await openArchive(`${at('reference-en.apipeline')}:k2`, {}));
    await opened.close();
    const { manifest } = opened;
    const shared = {
      ...manifest,
      graphs: manifest.graphs.filter(({ role }) => role !== 'vad_preprocess_stream'),
      flows: manifest.flows.map((flow) => ({
        ...flow,
        step: flow.step.map((one) => ({ ...one, role: one.role.replace(/^vad_preprocess.*/, 'vad_preprocess') })),
      })),
    };
    for (const [head, own] of [
      [manifest, 'rebuilt-en-vad_preprocess_stream'],
      [shared, 'rebuilt-en-vad_preprocess-stream'],
    ] as const) {
      const planned = new Map(planRepository(head, [target('cpu')]).map(({ name, configs: [one] }) => [name, one]));
      const [whole, live] = ['rebuilt-en', 'rebuilt-en-stream'].map((name) =>
        planned.get(name)?.ensemble_scheduling?.step.map((one) => one.model_name),
      );
      expect([whole?.[0], live?.[0]]).toEqual(['rebuilt-en-vad_preprocess', own]);
      expect(planned.get('rebuilt-en-vad_preprocess')?.dynamic_batching).toBeDefined();
      expect(planned.get(own)?.max_batch_size).toBe(32);
      expect(planned.get(own)?.dynamic_batching).toBeUndefined();
    }
  });

  it('M7 no path leads out of a model on any target', () => {
    for (const file of configs()) {
      const text = readFileSync(path.join(at('models'), file), 'utf8');
      expect(text.includes(scratch.path) || /"(\/|\.\.)/.test(text), file).toBe(false);
    }
  });
});

function readOf<T>(read: { ok: true; value: T } | { ok: false; refusal: { reason: string } }): T {
  if (!read.ok) throw new Error(read.refusal.reason);
  return read.value;
}

describe('M3 existing files', () => {
  const again = (repository: string, force: boolean, archives = [at('voice-en.apipeline')]) =>
    deploy({ archives, repository, targets: [target('cpu')], force }, {});

  it('are not overwritten; with -f only this tool’s files are', async () => {
    const repository = at('twice');
    madeOf(await again(repository, false));
    expect(await again(repository, false)).toMatchObject({ refusal: { kind: 'exists' } });
    writeFileSync(path.join(repository, 'voice-en', 'notes.txt'), 'mine');
    writeFileSync(path.join(repository, 'voice-en', 'config.pbtxt'), 'changed');
    madeOf(await again(repository, true));
    expect(readFileSync(path.join(repository, 'voice-en', 'notes.txt'), 'utf8')).toBe('mine');
    expect(readFileSync(path.join(repository, 'voice-en', 'config.pbtxt'), 'utf8')).toContain('platform: "ensemble"');
    expect(readdirSync(scratch.path).filter((name) => name.includes('partial'))).toEqual([]);
  });

  it('a foreign model stays unchanged, even with -f', async () => {
    const repository = at('foreign');
    mkdirSync(path.join(repository, 'voice-en-voice-en'), { recursive: true });
    writeFileSync(path.join(repository, 'voice-en-voice-en', 'config.pbtxt'), 'mine');
    expect(await again(repository, true)).toMatchObject({ refusal: { kind: 'exists' } });
    expect(readdirSync(repository)).toEqual(['voice-en-voice-en']);
    expect(readFileSync(path.join(repository, 'voice-en-voice-en', 'config.pbtxt'), 'utf8')).toBe('mine');
  });

  it.each(['../x', '..', '.', 'a/b', '/abs', 'x/../../y'])('under the name %s nothing goes anywhere', async (name) => {
    const [repository, before] = [at('inside'), readdirSync(scratch.path)];
    for (const force of [false, true]) {
      const archives = [at('voice-en.apipeline')];
      const made = await deploy({ archives, repository, targets: [target('cpu')], settings: { name }, force }, {});
      expect(made).toMatchObject({ refusal: { kind: 'written' } });
    }
    expect(readdirSync(scratch.path)).toEqual(before);
  });

  it('M2 distinguishes wrong key, missing key, no pipeline and duplicate names', async () => {
    const repository = at('never');
    const kind = async (...archives: string[]) => {
      const made = await again(repository, false, archives);
      return made.ok ? 'ok' : made.refusal.kind;
    };
    expect(await kind(`${at('reference-en.apipeline')}:wrong`)).toBe('key');
    expect(await kind(at('reference-en.apipeline'))).toBe('keyless');
    expect(await kind(`${at('reference-en.amodel')}:k1`)).toBe('artifact');
    expect(await kind(at('voice-en.apipeline'), at('voice-en.apipeline'))).toBe('artifact');
    expect(existsSync(repository)).toBe(false);
    expect(readdirSync(scratch.path).filter((name) => name.includes('partial'))).toEqual([]);
  });

  it('a recogniser and a voice are distinguished without a class', async () => {
    const build = async (...words: [string, string, string]) => {
      const made = await run(...words);
      return made.ok ? 'ok' : made.refusal.kind;
    };
    expect(await build('speech_synthesis', at('no.apipeline'), `${at('reference-en.amodel')}:k1`)).toBe('artifact');
    expect(await build('speech_recognition', at('no.apipeline'), `${at('voice-en.amodel')}:k1`)).toBe('artifact');
    expect(existsSync(at('no.apipeline'))).toBe(false);
  });

  it('the same archives make the same pipeline', async () => {
    madeOf(await run('speech_synthesis', at('again.apipeline'), `${at('voice-en.amodel')}:k1`));
    expect(readFileSync(at('again.apipeline')).equals(readFileSync(at('voice-en.apipeline')))).toBe(true);
    const opened = madeOf(await openArchive(at('again.apipeline'), {}));
    expect(opened.manifest).toMatchObject({
      kind: 'pipeline',
      pipeline: 'speech_synthesis',
      settings: { task: 'speak' },
    });
    await opened.close();
  });
});
