import { fork } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository, writeDelay } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { batchCounts, infer, row, statistics } from '../contract/engine/client.ts';
import { folder as installation } from './install.ts';
import { processesOf, sharedBy } from './processes.ts';

const patience = { timeout: 15_000, interval: 50 };
let folder: string;
let repository: string;
let triton: Triton;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  repository = path.join(folder, 'models');
  // The test runner may set it; a user's environment does not.
  delete process.env.PYTHONDONTWRITEBYTECODE;
  await writeDelay(repository, 'delay', { batchMs: 20, itemMs: 1, maxBatchSize: 8, queueMicros: 5_000, instances: 1 });
  triton = await startTriton({ installed: await installTriton({ folder: installation }), repository });
});
afterAll(async () => {
  await triton?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('T2: Triton on this machine', () => {
  it('listens on the loopback address only, on three ports', async () => {
    const lines =
      (await readFile('/proc/net/tcp', 'utf8')) + (await readFile('/proc/net/tcp6', 'utf8').catch(() => ''));
    for (const address of [triton.url, triton.grpc, triton.metricsUrl]) {
      const port = Number(/:(\d+)(?:\/metrics)?$/.exec(address)?.[1]);
      const written = port.toString(16).toUpperCase().padStart(4, '0');
      // Local address and port, any peer, state 0A: it listens.
      const listening = [...lines.matchAll(new RegExp(`: (\\w+):${written} \\w+:0000 0A`, 'g'))].map(
        ([, host]) => host,
      );
      expect(new Set(listening.map((host) => host?.replace(/^0{16}FFFF0000/, '')))).toEqual(new Set(['0100007F']));
    }
  });

  it('A1: the latency double echoes after a known time, and batches', async () => {
    const before = await batchCounts(triton, 'delay');
    const answers = await Promise.all(
      [1, 2, 3, 4, 5, 6, 7, 8].map((value) => infer(triton, 'delay', [row('X', value)])),
    );
    expect(answers.map(({ outputs }) => outputs[0]?.shape)).toEqual(Array(8).fill([1, 1]));
    const after = await batchCounts(triton, 'delay');
    const ran = (size: number) => (after[size] ?? 0) - (before[size] ?? 0);
    expect([1, 2, 3, 4, 5, 6, 7, 8].reduce((sum, size) => sum + size * ran(size), 0)).toBe(8);
    expect([2, 3, 4, 5, 6, 7, 8].some((size) => ran(size) > 0)).toBe(true);
    const { batch_stats: batches } = await statistics(triton, 'delay');
    for (const { compute_infer: taken } of batches) expect(taken.ns / taken.count / 1e6).toBeGreaterThanOrEqual(20);
  });

  it('A15: loading writes nothing into model folders, such as Python bytecode', async () => {
    const files = await readdir(repository, { recursive: true });
    expect(files.filter((file) => file.includes('__pycache__') || file.endsWith('.pyc'))).toEqual([]);
    expect(files).toContain(path.join('delay', '1', 'model.py'));
  });

  it.each(['ready', 'loading'])(
    'ends with the process that started it, killed when it was %s',
    async (when) => {
      const models = path.join(folder, when);
      // Several, so that a killed start is in the middle of loading; one that is ready is as ready with two.
      for (const name of when === 'ready' ? ['a', 'b'] : ['a', 'b', 'c', 'd'])
        await writeDelay(models, name, { batchMs: 0, itemMs: 0, maxBatchSize: 1, queueMicros: 0, instances: 1 });
      const child = fork(path.join(import.meta.dirname, 'hold.ts'), [installation, models, when], { execArgv: [] });
      const message = await new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
      });
      expect(message).toBe(when);
      expect((await processesOf(models)).length).toBeGreaterThanOrEqual(3);
      child.kill('SIGKILL');
      await expect.poll(() => processesOf(models), patience).toEqual([]);
      expect(await sharedBy(child.pid ?? 0)).toEqual([]);
    },
    60_000,
  );

  it('reports Triton’s error when a model fails, and leaves nothing running', async () => {
    const broken = path.join(folder, 'broken');
    await writeDelay(broken, 'typo', { batchMs: 0, itemMs: 0, maxBatchSize: 1, queueMicros: 0, instances: 1 });
    await writeFile(
      path.join(broken, 'typo', '1', 'model.py'),
      'class TritonPythonModel:\n  def initialize(self, args):\n    raise ValueError("no such luck")\n',
    );
    const installed = await installTriton({ folder: installation });
    await expect(startTriton({ installed, repository: broken })).rejects.toThrow(/typo.*no such luck/);
    const ofOthers = (await sharedBy(process.pid)).filter((name) => !name.includes(`_${new URL(triton.url).port}_`));
    expect(ofOthers).toEqual([]);
  });
});

describe('a repository for Triton', () => {
  const convert = async (config: string) => {
    const from = await mkdtemp(path.join(folder, 'from-'));
    await mkdir(path.join(from, 'm', '1'), { recursive: true });
    await writeFile(path.join(from, 'm', 'config.pbtxt'), config);
    await writeFile(path.join(from, 'm', '1', 'model.onnx'), 'x');
    await convertRepository(from, `${from}-python`);
    return readFile(path.join(`${from}-python`, 'm', 'config.pbtxt'), 'utf8');
  };
  const io =
    'input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]';

  it.each([
    'platform: "onnxruntime_onnx"',
    'backend: "onnxruntime"',
    'backend : \'onnxruntime\' platform: "onnxruntime_onnx"',
  ])('takes %s', async (written) => {
    expect(await convert(`name: "m" ${written} ${io}`)).toMatch(/^name: "m" backend: "python" +input/);
  });

  it.each([
    ['another backend', `name: "m" backend: "tensorrt" ${io}`, 'model m: not a configuration for ONNX Runtime'],
    [
      'inputs that are left out',
      'name: "m" backend: "onnxruntime"',
      'model m: inputs and outputs must be written down',
    ],
    ['a field that does not exist', `name: "m" backend: "onnxruntime" max_bach_size: 1 ${io}`, 'max_bach_size'],
    [
      'a network by another name',
      `backend: "onnxruntime" default_model_filename: "net.onnx" ${io}`,
      'must be called model.onnx',
    ],
  ])('refuses %s', async (_, config, complaint) => {
    await expect(convert(config)).rejects.toThrow(complaint);
  });
});
