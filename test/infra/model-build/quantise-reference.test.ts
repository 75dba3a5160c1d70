import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../infra/local/root.ts';
import { readModel, writeModel } from '../../../infra/pool/model-build/onnx/graph.ts';
import { quantise } from '../../../infra/pool/model-build/quantise/quantise.ts';
import { widen } from '../../../infra/pool/model-build/quantise/widen.ts';
import { runs } from '../../seeds.ts';
import { temporaryFolder } from '../local/folder.ts';
import { countErrors, decoders, openFeatures, openNetwork, soundOf } from './listen.ts';

const shipped = path.join(ROOT, 'infra/pool/models/repository');
const clips = path.join(ROOT, 'test/clips');
const source = path.join(shipped, 'asr_inference_fp16');
const graphOf = (folder: string) => readFileSync(path.join(folder, '1/model.onnx'));

describe('the reference network in 8 bits', () => {
  const scratch = temporaryFolder();
  const at = (name: string) => path.join(scratch.path, name);
  const spoken = (JSON.parse(readFileSync(path.join(clips, 'clips.json'), 'utf8')) as { file: string; text: string }[])
    .filter(({ file }) => file.endsWith('.wav'))
    .slice(0, runs(2, 100));

  beforeAll(async () => {
    mkdirSync(at('samples'));
    for (const { file } of spoken) cpSync(path.join(clips, file), at(`samples/${file}`));
    const [dynamic, fixed] = [
      await quantise({ folder: source, out: at('dynamic') }),
      await quantise({
        folder: source,
        out: at('static'),
        calibrate: { folder: at('samples'), features: path.join(shipped, 'vad_preprocess') },
      }),
    ];
    expect(dynamic).toMatchObject({ value: { method: 'dynamic', products: 56, samples: 0 } });
    expect(fixed).toMatchObject({ value: { method: 'static', products: 66, samples: spoken.length } });
  });
  afterAll(scratch.remove);

  it('A22 only softmax and normalisation stay in 32 bits', () => {
    const nodesOf = (folder: string) => readModel(graphOf(folder)).nodes;
    const [before, dynamic, fixed] = [nodesOf(source), nodesOf(at('dynamic')), nodesOf(at('static'))];
    const count = (nodes: typeof before, wanted: string) => nodes.filter(({ operator }) => operator === wanted).length;
    for (const operator of ['Softmax', 'LayerNormalization'])
      for (const made of [dynamic, fixed]) expect(count(made, operator)).toBe(count(before, operator));
    // Products of two activations remain: attention.
    expect([count(dynamic, 'MatMul'), count(dynamic, 'MatMulInteger')]).toEqual([18, 56]);
    const rounded = fixed.filter(({ operator }) => operator === 'DequantizeLinear').flatMap(({ outputs }) => outputs);
    const reads = new Set(fixed.filter(({ operator }) => operator === 'Softmax').flatMap(({ inputs }) => inputs));
    expect(rounded.filter((name) => reads.has(name))).toEqual([]);
    expect(rounded.length).toBeGreaterThan(66);
  });

  it('A22 is under a third of 32 bits, with the same transcript', {
    // Three networks hear every clip.
    timeout: 30_000,
  }, async () => {
    const [features, decoder] = [await openFeatures(), decoders.letters()];
    const heard = [];
    for (const { file, text } of spoken) heard.push(await features(text, soundOf(path.join(clips, file))));
    const full = writeModel(widen(readModel(graphOf(source))));
    const errors = { full: 0, dynamic: 0, fixed: 0 };
    const networks = { full, dynamic: graphOf(at('dynamic')), fixed: graphOf(at('static')) };
    const inFull: Float32Array[] = [];
    for (const name of ['full', 'dynamic', 'fixed'] as const) {
      const network = await openNetwork(networks[name]);
      for (const [place, sample] of heard.entries()) {
        const answer = await network.hear(sample);
        errors[name] += countErrors(decoder, answer, sample.text);
        inFull[place] ??= answer.probabilities;
        expect(meanDistance(answer.probabilities, inFull[place])).toBeLessThan(0.01);
      }
      await network.close();
      if (name !== 'full') expect(networks[name].length).toBeLessThan(full.length / 3);
    }
    expect(errors.dynamic).toBeLessThanOrEqual(errors.full + 1);
    expect(errors.fixed).toBeLessThanOrEqual(errors.full + 2);
  });
});

/** Mean difference of probabilities. */
const meanDistance = (one: Float32Array, other: Float32Array) =>
  one.reduce((sum, value, at) => sum + Math.abs(Math.exp(value) - Math.exp(other[at] as number)), 0) / one.length;
