import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { buildModel } from '../../../infra/cli/models/build.ts';
import { ROOT } from '../../../infra/local/root.ts';
import {
  makeNode,
  makeOutput,
  makeWeight,
  type OnnxModel,
  readModel,
  writeModel,
} from '../../../infra/pool/model-build/onnx/graph.ts';
import { readOnnx } from '../../../infra/pool/model-build/onnx/read-onnx.ts';
import { writeTensor } from '../../../infra/pool/model-build/onnx/tensor.ts';
import { integerField, joinBytes, messageField, textField } from '../../../infra/pool/model-build/onnx/write-wire.ts';
import { findProducts } from '../../../infra/pool/model-build/quantise/find-products.ts';
import { Histogram } from '../../../infra/pool/model-build/quantise/histogram.ts';
import { quantise } from '../../../infra/pool/model-build/quantise/quantise.ts';
import { toDynamic } from '../../../infra/pool/model-build/quantise/to-dynamic.ts';
import { stepOf, toStatic } from '../../../infra/pool/model-build/quantise/to-static.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { startEmbedded } from '../../contract/engine/embedded.ts';
import { randomOf } from '../../fake/random.ts';
import { runs, seeds } from '../../seeds.ts';
import { folderForTest } from '../local/folder.ts';

const shipped = path.join(ROOT, 'infra/pool/models/repository');
const graphOf = (folder: string) => readFileSync(path.join(folder, '1/model.onnx'));

/** `Y = X · W`, or with another operator, from `dims` of weights that `value` makes. */
function productOf(
  operator: string,
  dims: readonly number[],
  value: (at: number) => number,
  bias?: readonly number[],
): OnnxModel {
  const values = Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, at) => value(at));
  const shift = bias && makeWeight(writeTensor('b', [bias.length], Float32Array.from(bias)));
  return {
    nodes: [makeNode(operator, ['X', 'W', ...(shift ? ['b'] : [])], ['Y'])],
    weights: [makeWeight(writeTensor('W', dims, values)), ...(shift ? [shift] : [])],
    inputs: [makeOutput('X', 1)],
    outputs: [makeOutput('Y', 1)],
    opset: 17,
    rest: {
      model: [
        integerField(1, 8),
        messageField(8, [integerField(2, 17)]),
        textField(2, 'test'),
        textField(99, 'unknown'),
      ],
      graph: [
        { number: 2, raw: textField(2, 'g') },
        { number: 77, raw: textField(77, 'unknown, too') },
      ],
    },
    graphAt: 3,
  };
}

async function run(model: OnnxModel, x: Float32Array, dims: readonly number[]): Promise<Float32Array> {
  const session = await InferenceSession.create(writeModel(model), { intraOpNumThreads: 1 });
  const { Y } = await session.run({ X: new Tensor('float32', x, [...dims]) });
  await session.release();
  return Y?.data as Float32Array;
}

/** Numbers between -1 and 1, the same for the same seed. */
function drawn(length: number, seed: number): Float32Array {
  const random = randomOf(seed + 1);
  return Float32Array.from({ length }, () => 2 * random() - 1);
}

describe('ONNX files, read and written', () => {
  const networks = readdirSync(shipped).filter((name) => existsSync(path.join(shipped, name, '1/model.onnx')));
  it.each(networks.reverse().slice(0, runs(3, 100)))('A15 %s: unchanged parts keep their bytes', (name) => {
    const bytes = graphOf(path.join(shipped, name));
    expect(Buffer.compare(writeModel(readModel(bytes)), bytes)).toBe(0);
  });

  it('keeps fields that it does not know, also when something is changed', () => {
    const bytes = writeModel(
      toDynamic(productOf('MatMul', [32, 32], Math.sin), findProducts(productOf('MatMul', [32, 32], Math.sin))),
    );
    for (const text of [textField(99, 'unknown'), textField(77, 'unknown, too')])
      expect(Buffer.from(bytes).includes(Buffer.from(text))).toBe(true);
    expect(readOnnx(bytes).irVersion).toBe(8);
  });
});

describe('products in 8 bits', () => {
  const cases = {
    MatMul: { weights: [48, 16], x: [2, 5, 48] },
    Gemm: { weights: [48, 16], x: [7, 48], bias: Array.from({ length: 16 }, (_, at) => at - 8) },
    Conv: { weights: [16, 8, 3, 3], x: [2, 8, 9, 7], bias: Array.from({ length: 16 }, (_, at) => at / 4) },
  } as const;

  it.each(Object.entries(cases))(
    'A15 %s: dynamic and static stay near the product in full',
    async (operator, given) => {
      const { weights, x: dims } = given;
      const channelOf = (at: number) => (operator === 'Conv' ? Math.floor(at / 72) : at % 16);
      for (let seed = 0; seed < runs(8, 200); seed++) {
        const values = drawn(2_000, seed + 1_000);
        // Channels of very different size: what one scale for all of them would lose.
        const model = productOf(
          operator,
          weights,
          (at) => (values[at] as number) * 10 ** (channelOf(at) % 3),
          'bias' in given ? given.bias : undefined,
        );
        const x = drawn(
          dims.reduce((a, b) => a * b, 1),
          seed,
        );
        const products = findProducts(model);
        expect(products).toHaveLength(1);
        const full = await run(model, x, dims);
        const ranges = new Map([
          ['X', { low: -1, high: 1 }],
          ['Y', { low: Math.min(...full), high: Math.max(...full) }],
        ]);
        for (const made of [toDynamic(model, products), toStatic(model, products, ranges)]) {
          const answer = await run(made, x, dims);
          expect(answer).not.toEqual(full);
          expect(apartBy(answer, full)).toBeLessThan(0.03);
        }
      }
    },
  );

  it('A22 zero is exact, and rounding errs by half a step', () => {
    for (let seed = 0; seed < seeds; seed++) {
      const [low, high] = [Math.sin(seed) * 10 ** (seed % 5), Math.cos(seed * 7) * 10 ** (seed % 4)].sort(
        (a, b) => a - b,
      ) as [number, number];
      const { scale, zero } = stepOf({ low, high });
      expect(Number.isInteger(zero) && zero >= 0 && zero <= 255).toBe(true);
      const [from, to] = [(0 - zero) * scale, (255 - zero) * scale];
      expect(from).toBeLessThanOrEqual(Math.min(low, 0) + scale);
      expect(to).toBeGreaterThanOrEqual(Math.max(high, 0) - scale);
    }
  });

  it('A22 rare values are cut off when the others gain more', () => {
    const histogram = new Histogram();
    for (let n = 0; n < 50; n++) expect(histogram.add(drawn(1_000, n))).toBe(true);
    const plain = histogram.range();
    expect(plain.high).toBeGreaterThan(0.9);
    histogram.add(Float32Array.of(30));
    expect(histogram.range().high).toBeLessThan(30);
    expect(histogram.range().high).toBeGreaterThan(plain.high);
    expect(histogram.add(Float32Array.of(Number.NaN))).toBe(false);
  });
});

/** Any number of rows of so many numbers, as an input or output of a graph. */
const rowsOf = (name: string, width: number) => {
  const shape = messageField(2, [messageField(1, [textField(2, 'N')]), messageField(1, [integerField(1, width)])]);
  return joinBytes([textField(1, name), messageField(2, [messageField(1, [integerField(1, 1), shape])])]);
};

/** A model folder with `Y = X · W`, and requests to calibrate it with. */
function writeSmall(): { at: (name: string) => string; static: string[] } {
  const folder = folderForTest();
  const at = (name: string) => path.join(folder, name);
  mkdirSync(at('small/1'), { recursive: true });
  const values = drawn(48 * 16, 7);
  const model = productOf('MatMul', [48, 16], (place) => values[place] as number);
  const doors = { inputs: [rowsOf('X', 48)], outputs: [rowsOf('Y', 16)] };
  writeFileSync(at('small/1/model.onnx'), writeModel({ ...model, ...doors }));
  writeFileSync(
    at('small/config.pbtxt'),
    `name: "small" platform: "onnxruntime_onnx" max_batch_size: 8
     input [ { name: "X" data_type: TYPE_FP32 dims: [ 48 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 16 ] } ]
     optimization { execution_accelerators { cpu_execution_accelerator [ { name: "openvino" } ] } input_pinned_memory { enable: true } }
     parameters { key: "vocabulary" value { string_value: "words.txt" } }`,
  );
  writeFileSync(at('small/words.txt'), 'one\n');
  mkdirSync(at('requests'));
  for (let n = 0; n < 4; n++) {
    const input = { name: 'X', datatype: 'FP32', shape: [1, 48], data: [...drawn(48, n)] };
    writeFileSync(at(`requests/${n}.json`), JSON.stringify({ inputs: [input] }));
  }
  return { at, static: ['--static', '--calibrate', at('requests')] };
}

describe('a model folder in 8 bits', () => {
  it('A15 is a named, configured model with reproducible bytes', async () => {
    const { at, ...more } = writeSmall();
    for (const [method, words] of Object.entries({ dynamic: [], static: more.static })) {
      const quantised = (out: string) => buildModel(['quantise', at('small'), '--out', at(out), ...words]);
      const made = await quantised(`one/${method}`);
      expect(made).toMatchObject({ exit: 0, value: { method, products: 1, samples: words.length > 0 ? 4 : 0 } });
      expect((await quantised(`two/${method}`)).value).toMatchObject({
        digest: (made.value as { digest: string }).digest,
      });
      const files = readdirSync(at(`one/${method}`), { recursive: true }) as string[];
      expect(files.sort()).toEqual(['1', '1/model.onnx', 'auricle-deployed.json', 'config.pbtxt', 'words.txt']);
      for (const file of files.filter((name) => name !== '1'))
        expect(readFileSync(at(`one/${method}/${file}`)).equals(readFileSync(at(`two/${method}/${file}`)))).toBe(true);
      const text = readFileSync(at(`one/${method}/config.pbtxt`), 'utf8');
      // No accelerator may compute another result than the measured one.
      expect(text).not.toContain('execution_accelerators');
      expect(parseText(text)).toMatchObject({
        value: {
          name: method,
          max_batch_size: 8,
          optimization: { input_pinned_memory: { enable: true } },
          parameters: {
            vocabulary: { string_value: 'words.txt' },
            precision: { string_value: 'int8' },
            quantised: { string_value: method },
          },
        },
      });
    }
  });

  it('A15 the embedded engine serves the result, near its source', async () => {
    const { at, ...more } = writeSmall();
    const made = { dynamic: [], static: more.static };
    for (const [method, words] of Object.entries(made))
      await buildModel(['quantise', at('small'), '--out', at(`models/${method}`), ...words]);
    cpSync(at('small'), at('models/small'), { recursive: true });
    const engine = await startEmbedded(at('models'));
    onTestFinished(async () => void (await engine.stop()));
    const inputs = [{ name: 'X', datatype: 'FP32', shape: [1, 48], data: [...drawn(48, 2)] }];
    const infer = async (model: string) => {
      const url = `${engine.url}/v2/models/${model}/infer`;
      const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ inputs }) });
      const said = await answer.text();
      expect(answer.status, said).toBe(200);
      return (JSON.parse(said) as { outputs: { data: number[] }[] }).outputs[0]?.data ?? [];
    };
    const full = await infer('small');
    expect(full).toHaveLength(16);
    for (const method of Object.keys(made)) {
      const given = await infer(method);
      expect(given).not.toEqual(full);
      expect(apartBy(given, full)).toBeLessThan(0.03);
    }
  });

  it('A15 refuses unsupported models, and leaves nothing behind', async () => {
    const { at, ...more } = writeSmall();
    const exits = async (...words: string[]) => (await buildModel(['quantise', at('small'), ...words])).exit;
    expect(await exits('--out', at('new'), '--static')).toBe(2);
    expect(await exits('--out', at('new'), '--calibrate', at('requests'))).toBe(2);
    expect(await exits('--out', at('new'), '--samples', '9')).toBe(2);
    expect(await exits('--out', at('new'), '--static', '--calibrate', at('nowhere'))).toBe(3);
    expect(await exits('--out', at('new'), '--static', '--calibrate', at('small'))).toBe(3);
    mkdirSync(at('theirs'));
    expect(await exits('--out', at('theirs'), '-f')).toBe(7);
    writeFileSync(
      at('requests/5.json'),
      JSON.stringify({ inputs: [{ name: 'Z', datatype: 'FP32', shape: [1], data: [9] }] }),
    );
    expect(await exits('--out', at('new'), ...more.static)).toBe(9);
    for (const folder of ['reference-en', 'asr_inference', 'nlp_postprocess']) {
      const made = await quantise({ folder: path.join(shipped, folder), out: at('new') });
      expect(made).toMatchObject({ ok: false, refusal: { kind: 'unsupported' } });
    }
    expect(readdirSync(at('.')).sort()).toEqual(['requests', 'small', 'theirs']);
    expect(await exits('--out', at('new'))).toBe(0);
    expect(await exits('--out', at('new'))).toBe(7);
    expect(await exits('--out', at('new'), '-f')).toBe(0);
    writeFileSync(at('small/1/model.onnx'), 'no network');
    expect(await exits('--out', at('new'), '-f')).toBe(3);
    expect(existsSync(at('new/1/model.onnx'))).toBe(true);
  });
});

/** The largest difference, as a part of the largest number. */
const apartBy = (one: ArrayLike<number>, other: ArrayLike<number>): number => {
  const most = (values: readonly number[]) => Math.max(...values.map(Math.abs));
  const all = Array.from(other);
  return most(all.map((value, at) => value - (one[at] ?? Number.NaN))) / most(all);
};
