import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelTensors } from '../../../../infra/pool/agent/asr/recognise.ts';
import type { Engine } from '../../../../infra/pool/agent/engine/engine.ts';
import { createKserveEngine } from '../../../../infra/pool/agent/engine/kserve.ts';
import { fp32Tensor, int32Tensor, readFp32, readInt32 } from '../../../../shared/kserve/tensor.ts';
import { classes } from '../../../../shared/tenant/claims.ts';
import { startEmbedded } from '../../../contract/engine/embedded.ts';
import { startFakeEngine } from '../../../fake/engine.ts';
import { voice } from '../fixtures.ts';

interface Started {
  readonly url: string;
  readonly model: string;
  /** The models that keep its requests waiting, by name. */
  readonly queues: string[];
  stop(): Promise<unknown>;
}

const repository = path.resolve(import.meta.dirname, '../../../../infra/pool/models/repository');

const implementations: { name: string; absent?: boolean; start: () => Promise<Started> }[] = [
  {
    name: 'the double of this folder',
    async start() {
      const double = await startFakeEngine();
      return { url: double.url, model: 'test-en', queues: ['test-en'], stop: double.stop };
    },
  },
  {
    name: 'the embedded engine with the reference model',
    absent: !existsSync(path.join(repository, 'reference-en/config.pbtxt')),
    async start() {
      const { url, stop } = await startEmbedded(repository, ['reference-en']);
      return { url, model: 'reference-en', queues: ['asr_inference', 'nlp_postprocess', 'vad_preprocess'], stop };
    },
  },
];

/** The engine client against each implementation. */
describe.each(implementations)('engine client and $name', ({ absent, start }) => {
  let started: Started;
  let engine: Engine;
  const signal = new AbortController().signal;
  beforeAll(async () => {
    if (absent) return;
    started = await start();
    engine = createKserveEngine(started.url, 2);
  }, 60_000);
  afterAll(async () => {
    engine?.close();
    await started?.stop();
  }, 30_000);

  const samples = voice(1);
  const infer = (changes: Partial<Parameters<Engine['infer']>[0]> = {}) =>
    engine.infer({
      model: started.model,
      inputs: [
        fp32Tensor('AUDIO', samples, [1, samples.length]),
        int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
      ],
      outputs: modelTensors.outputs,
      priority: 1,
      timeoutMicros: 10_000_000,
      signal,
      ...changes,
    });

  it.skipIf(absent)('knows that it is ready, and which model is', async () => {
    expect(await engine.ready(signal)).toBe(true);
    expect(await engine.modelReady(started.model, signal)).toBe(true);
  });

  it.skipIf(absent)('reads names and shapes of tensors (A18)', async () => {
    const metadata = await engine.metadata(started.model, signal);
    if (!metadata.ok) throw new Error(metadata.refusal.detail);
    const { inputs, outputs } = metadata.value;
    expect(inputs.map(({ name }) => name).toSorted()).toEqual(modelTensors.inputs.toSorted());
    expect(outputs.map(({ name }) => name)).toEqual(expect.arrayContaining([...modelTensors.outputs]));
    // Reveals a vocabulary mismatch before any inference.
    expect(outputs.find(({ name }) => name === 'LOG_PROBS')?.shape).toEqual([-1, -1, 29]);
  });

  it.skipIf(absent)('A2 A18: reads where requests wait, with a level for each class', async () => {
    const queues = await engine.queues(started.model, signal);
    if (!queues.ok) throw new Error(queues.refusal.detail);
    expect(queues.value.map(({ model }) => model).toSorted()).toEqual(started.queues);
    for (const { model, levels } of queues.value) expect(levels, model).toBe(classes.length);
    expect((await engine.queues('nobody', signal)).ok).toBe(false);
  });

  it.skipIf(absent)('infers with binary tensors and counts it', async () => {
    const requests = async () => {
      const statistics = await engine.statistics(started.model, signal);
      return statistics.ok ? statistics.value.requests : Number.NaN;
    };
    const before = await requests();
    const outcome = await infer();
    if (!outcome.ok) throw new Error(outcome.detail);
    const [scores, frames] = modelTensors.outputs.map((name) => outcome.value.get(name));
    if (!scores || !frames) throw new Error('outputs');
    const [values, count] = [readFp32(scores), readInt32(frames)];
    if (!values.ok || !count.ok) throw new Error('tensors');
    expect(scores.shape.length).toBe(3);
    expect(count.value[0]).toBeGreaterThan(0);
    expect(count.value[0]).toBeLessThanOrEqual(scores.shape[1] ?? 0);
    expect(Math.max(...values.value)).toBeLessThanOrEqual(1e-3);
    expect(await requests()).toBe(before + 1);
  });

  it.skipIf(absent)('tells an aborted inference from one worth another try', async () => {
    const cancel = new AbortController();
    cancel.abort();
    expect(await infer({ signal: cancel.signal })).toMatchObject({ ok: false, retryable: false });
  });
});

describe('a request of a sequence (A5)', () => {
  it('sends sequence id and position, and no timeout inside the engine', async () => {
    const double = await startFakeEngine();
    const engine = createKserveEngine(double.url, 1);
    const samples = new Float32Array(160);
    const base = {
      model: 'test-en',
      inputs: [fp32Tensor('AUDIO', samples, [1, 160]), int32Tensor('AUDIO_LENGTH', Int32Array.of(160), [1, 1])],
      outputs: modelTensors.outputs,
      priority: 2,
      timeoutMicros: 1_000,
      signal: new AbortController().signal,
    };
    await engine.infer({ ...base, sequence: { id: 4_503_599_627_370_497, start: true, end: false } });
    await engine.infer(base);
    await engine.infer({ ...base, priority: 0 });
    double.failures.push(400);
    const refused = await engine.infer({ ...base, sequence: { id: 'a', start: false, end: true } });
    expect(refused).toMatchObject({ ok: false, retryable: false, status: 400 });
    const parameters = double.seen.map(({ parameters: given }) => given);
    expect(parameters[0]).toEqual({ sequence_id: 4_503_599_627_370_497, sequence_start: true, sequence_end: false });
    expect(parameters[1]).toEqual({ priority: 2, timeout: 1_000 });
    expect(parameters[2]).toEqual({ timeout: 1_000 });
    expect(parameters[3]).toEqual({ sequence_id: 'a', sequence_start: false, sequence_end: true });
    engine.close();
    await double.stop();
  });
});

describe('an engine that is not there', () => {
  const engine = createKserveEngine('http://127.0.0.1:9', 1);
  const signal = new AbortController().signal;

  it('is not ready, and asking again may help', async () => {
    expect(await engine.ready(signal)).toBe(false);
    expect(await engine.modelReady('m', signal)).toBe(false);
    expect((await engine.metadata('m', signal)).ok).toBe(false);
    expect((await engine.statistics('m', signal)).ok).toBe(false);
    const nothing = { model: 'm', inputs: [], outputs: [], priority: 1, timeoutMicros: 1, signal };
    expect(await engine.infer(nothing)).toMatchObject({ ok: false, retryable: true, detail: 'engine ECONNREFUSED' });
  });
});
