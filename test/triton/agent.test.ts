import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, startAgent } from '../../infra/pool/agent/agent.ts';
import { modelTensors } from '../../infra/pool/agent/asr/recognise.ts';
import { createDispatcher } from '../../infra/pool/agent/engine/dispatch.ts';
import type { Engine, Inference } from '../../infra/pool/agent/engine/engine.ts';
import { createKserveEngine } from '../../infra/pool/agent/engine/kserve.ts';
import { readRepository } from '../../infra/pool/agent/models/models.ts';
import { readSettings } from '../../infra/pool/agent/settings/settings.ts';
import { createSpeaker } from '../../infra/pool/agent/tts/create-speaker.ts';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { fp32Tensor, int32Tensor, readFp32, readInt32, type Tensor } from '../../shared/kserve/tensor.ts';
import { classes } from '../../shared/tenant/claims.ts';
import { settled } from '../contract/engine/client.ts';
import { startEmbedded } from '../contract/engine/embedded.ts';
import { askShort, type FakeEdge, startFakeEdge } from '../fake/edge.ts';
import { audioForm, multipart } from '../infra/agent/fixtures.ts';
import { makeEnvironment } from '../infra/agent/start-agent.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';
import { folder as installation } from './install.ts';

const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');
const model = 'reference-en';
/** The step that both reference ensembles share, so that unloading it takes both down. */
const shared = 'nlp_postprocess';
const clip = clipLike('balance.wav');
/** Agents poll their engine every second; a model needs a while to load and unload. */
const patience = { timeout: 15_000, interval: 50 };

let folder: string;
let triton: Triton;
let embedded: Awaited<ReturnType<typeof startEmbedded>>;
let edge: FakeEdge;
let agents: { triton: Agent; embedded: Agent };
let engine: Engine;

async function startOn(url: string, name: string): Promise<Agent> {
  const own = await mkdtemp(path.join(folder, name));
  const environment = { ...(await makeEnvironment(own, edge)), AURICLE_MODELS: repository, AURICLE_ENGINE_URL: url };
  return startAgent(readSettings(environment), { write: () => {} });
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  edge = await startFakeEdge();
  const installed = await installTriton({ folder: installation });
  await convertRepository(repository, path.join(folder, 'python'));
  [triton, embedded] = await Promise.all([
    startTriton({ installed, repository: path.join(folder, 'python') }),
    startEmbedded(repository, [model, 'voice-en']),
  ]);
  agents = { triton: await startOn(triton.url, 'a'), embedded: await startOn(embedded.url, 'b') };
  engine = createKserveEngine(triton.url, 4);
});
afterAll(async () => {
  engine?.close();
  await Promise.all([agents?.triton.stop(), agents?.embedded.stop()]);
  await Promise.all([triton?.stop(), embedded?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

const ask = (agent: Agent) =>
  askShort({
    url: agent.url,
    agent: 'agent-1',
    attestation: agent.keys.current().token,
    edge,
    body: audioForm(clipBytes(clip), [{ name: 'model', value: model }]),
    contentType: multipart,
    head: { model },
  });

/** Returns 16 kHz samples of a clip, in the agent's form. */
async function samplesOf(file: string): Promise<Float32Array> {
  const bytes = await readFile(path.resolve(import.meta.dirname, '../clips', file));
  const sound = new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.byteLength));
  return Float32Array.from(sound, (value) => value / 32_768);
}

const inputsFor = (samples: Float32Array): Tensor[] => [
  fp32Tensor('AUDIO', samples, [1, samples.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
];
const signal = new AbortController().signal;
const infer = (from: Engine, inputs: readonly Tensor[], changes: Partial<Inference> = {}) =>
  from.infer({
    model,
    inputs,
    outputs: modelTensors.outputs,
    priority: 2,
    timeoutMicros: 10_000_000,
    signal,
    ...changes,
  });

const repositoryCall = async (action: 'load' | 'unload', name: string) => {
  const answer = await fetch(`${triton.url}/v2/repository/models/${name}/${action}`, { method: 'POST' });
  return answer.status;
};

describe('T2: the agent on a real Triton', () => {
  it('C5 A18: transcribes a recording as it does on the embedded engine', async () => {
    const [here, there] = [await ask(agents.triton), await ask(agents.embedded)];
    expect(here.status).toBe(200);
    expect(here.whole).toBe(true);
    const segments = ({ events }: typeof here) => events.filter(({ type }) => type === 'segment');
    expect(segments(here).length).toBeGreaterThan(0);
    expect(segments(here)).toEqual(segments(there));
    const ready = ({ events }: typeof here) => events.find(({ type }) => type === 'ready');
    expect(ready(here)).toEqual(ready(there));
  });

  it('T3: speaks with the same samples as on the embedded engine', async () => {
    const found = (await readRepository(repository, { now: 0, onBroken: () => {} })).find(({ speech }) => speech);
    if (!found?.speech) throw new Error('the repository has no voice');
    const { speech: parameters, description } = found;
    const other = createKserveEngine(embedded.url, 1);
    const say = (on: Engine) => {
      const { run } = createDispatcher({ engine: on, slots: 1, now: Date.now });
      const speaker = createSpeaker({ model: description.name, parameters, run, now: Date.now });
      return speaker.speak('The meeting starts at 10.', { voice: 'awb' }, AbortSignal.timeout(30_000));
    };
    const [here, there] = [await say(engine), await say(other)];
    other.close();
    if (!here.ok || !there.ok) throw new Error('an engine failed');
    expect(here.value.length).toBeGreaterThan(16_000);
    expect(Buffer.compare(Buffer.from(here.value.buffer), Buffer.from(there.value.buffer))).toBe(0);
  });

  it('A18: gets the same numbers as from the embedded engine', async () => {
    const other = createKserveEngine(embedded.url, 1);
    const samples = await samplesOf('balance.wav');
    const [here, there] = [await infer(engine, inputsFor(samples)), await infer(other, inputsFor(samples))];
    other.close();
    if (!here.ok || !there.ok) throw new Error('an engine failed');
    const read = (outputs: ReadonlyMap<string, Tensor>) => {
      const [scores, frames] = modelTensors.outputs.map((name) => outputs.get(name));
      const values = scores && readFp32(scores);
      const count = frames && readInt32(frames);
      if (!values?.ok || !count?.ok) throw new Error('an output is missing');
      return { values: values.value, frames: count.value[0] };
    };
    const [mine, its] = [read(here.value), read(there.value)];
    expect(mine.frames).toBe(its.frames);
    expect(mine.values.length).toBe(its.values.length);
    expect(mine.values).toEqual(its.values);
  });

  it('A1: concurrent requests share executions and get their own answers', async () => {
    const samples = await samplesOf('balance.wav');
    const lengths = [8_000, 9_000, 12_345, 16_000, 20_001, 24_000, 30_000, 32_000];
    const frames = async (length: number) => {
      const outcome = await infer(engine, inputsFor(samples.slice(0, length)));
      const tensor = outcome.ok ? outcome.value.get('FRAMES') : undefined;
      const count = tensor && readInt32(tensor);
      return count?.ok ? count.value[0] : outcome;
    };
    const alone: unknown[] = [];
    for (const length of lengths) alone.push(await frames(length));
    expect(await Promise.all(lengths.map(frames))).toEqual(alone);
    expect(new Set(alone).size).toBe(lengths.length);
  });

  it('R14: its metrics carry Triton’s counters', async () => {
    const page = await (await fetch(`${agents.triton.url}/metrics`)).text();
    expect(page).toMatch(/^auricle_agent_engine_requests_total\{model="reference-en"\} [1-9]/m);
    // Triton counts no waiting of the ensemble: the steps do.
    expect(page).not.toContain('auricle_agent_engine_queue_seconds_total{model="reference-en"}');
    for (const step of ['vad_preprocess', 'asr_inference', shared]) {
      const [, seconds] =
        new RegExp(`^auricle_agent_engine_queue_seconds_total\\{model="${step}"\\} (\\S+)$`, 'm').exec(page) ?? [];
      expect(Number(seconds), step).toBeGreaterThan(0);
    }
  });
});

/** Unusual answers of Triton, and their translation by the agent. */
describe('T2: Triton’s odd answers', () => {
  const samples = Float32Array.from({ length: 16_000 }, (_, i) => 0.1 * Math.sin(i * 0.05));

  it.each([
    [
      'a shape that does not fit the model',
      400,
      inputsFor(samples).map((one) => ({ ...one, shape: [1, ...one.shape] })),
    ],
    [
      'two lengths where the model takes one',
      400,
      [inputsFor(samples)[0]!, int32Tensor('AUDIO_LENGTH', Int32Array.of(1, 2), [1, 2])],
    ],
    ['an input that is missing', 400, inputsFor(samples).slice(0, 1)],
  ] as const)('%s (%i) becomes engine_failed, without Triton’s sentence', async (_, status, inputs) => {
    const dispatcher = createDispatcher({ engine, slots: 1, now: Date.now });
    const answer = await dispatcher.run({
      model,
      inputs,
      outputs: modelTensors.outputs,
      class: 'default',
      deadline: Date.now() + 10_000,
      signal,
    });
    const detail = `engine status ${status}`;
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'engine_failed', detail } });
  });

  it('an unknown model (404 as plain text) is refused without retry', async () => {
    const outcome = await infer(engine, inputsFor(samples), { model: 'nobody' });
    expect(outcome).toEqual({ ok: false, retryable: false, detail: 'engine status 404', status: 404 });
  });

  it('A2: the agent reads every step’s levels, and requests no other priority', async () => {
    const queues = await engine.queues(model, signal);
    if (!queues.ok) throw new Error(queues.refusal.detail);
    expect(queues.value.map((queue) => queue.model).toSorted()).toEqual(['asr_inference', shared, 'vad_preprocess']);
    for (const { model: step, levels } of queues.value) expect(levels, step).toBe(classes.length);
    expect((await infer(engine, inputsFor(samples), { priority: classes.length + 5 })).ok).toBe(true);
  });

  it('A5: a known sequence continues; an unknown one (400) is not retried', async () => {
    const id = 4711;
    const say = (start: boolean, end: boolean) =>
      infer(engine, inputsFor(samples.slice(0, 5360)), { model: 'reference-en-stream', sequence: { id, start, end } });
    const unknown = { ok: false, retryable: false, detail: 'engine status 400', status: 400 };
    expect(await say(false, false)).toEqual(unknown);
    for (const [start, end] of [
      [true, false],
      [false, false],
      [false, true],
    ] as const)
      expect((await say(start, end)).ok).toBe(true);
    expect(await say(false, true)).toEqual(unknown);
  });

  it('a waiting time that is over (503) is worth another try', async () => {
    // Eight requests at once on one instance: with a timeout of a microsecond some are overdue.
    const many = await Promise.all(
      Array.from({ length: 24 }, () => infer(engine, inputsFor(samples), { timeoutMicros: 1 })),
    );
    const refused = many.filter((outcome) => !outcome.ok);
    expect(refused.length).toBeGreaterThan(0);
    const expected = { ok: false, retryable: true, detail: 'engine status 503', status: 503 };
    for (const outcome of refused) expect(outcome).toEqual(expected);
  });

  it('a departed client is answered at once, while Triton continues', async () => {
    const leaving = new AbortController();
    const requests = async (of: string) => {
      const now = await engine.statistics(of, signal);
      return now.ok ? now.value.requests : Number.NaN;
    };
    const [whole, step] = [await settled(() => requests(model)), await settled(() => requests('vad_preprocess'))];
    const outcome = infer(engine, inputsFor(new Float32Array(60 * 16_000)), { signal: leaving.signal });
    // Its first step is done, so Triton has the request; the second one takes much longer.
    await expect.poll(() => requests('vad_preprocess'), { ...patience, interval: 5 }).toBe(step + 1);
    leaving.abort();
    expect(await outcome).toMatchObject({ ok: false, retryable: false });
    expect(await requests(model)).toBe(whole);
    await expect.poll(() => requests(model), patience).toBe(whole + 1);
  });

  it('an early unload answer: callers go elsewhere until the model is back', async () => {
    const served = async () => (await ask(agents.triton)).reason ?? 'served';
    expect(await served()).toBe('served');
    const before = await engine.statistics(model, signal);
    expect(before.ok && before.value.requests).toBeGreaterThan(0);

    expect(await repositoryCall('unload', shared)).toBe(200);
    // Between Triton's answer and the agent's next poll a request may still be served, or fail as designed.
    await expect
      .poll(async () => {
        const { status, reason, events } = await ask(agents.triton);
        const refusal = events.find((event) => event.type === 'refusal');
        if (status === 200 && refusal) expect(refusal).toMatchObject({ reason: 'engine_failed' });
        else if (status === 200) expect(events.at(-1)?.type).toBe('final');
        return reason;
      }, patience)
      .toBe('misdirected');
    expect(await engine.modelReady(model, signal)).toBe(false);
    expect(await infer(engine, inputsFor(samples))).toMatchObject({ ok: false, retryable: false });
    // One model is unavailable; the engine, and the agent's other work, is not.
    expect(await engine.ready(signal)).toBe(true);
    expect((await fetch(`${agents.triton.url}/readyz`)).status).toBe(200);

    expect(await repositoryCall('load', shared)).toBe(200);
    await expect.poll(served, patience).toBe('served');
  });

  it('R14: counters that restart are reported as they are', async () => {
    for (const action of ['unload', 'load'] as const) {
      expect(await repositoryCall(action, model)).toBe(200);
      await expect.poll(() => engine.modelReady(model, signal), patience).toBe(action === 'load');
    }
    const after = await engine.statistics(model, signal);
    expect(after).toMatchObject({ ok: true, value: { requests: 0, computeNs: 0 } });
    expect((await infer(engine, inputsFor(samples))).ok).toBe(true);
    await expect
      .poll(async () => {
        const now = await engine.statistics(model, signal);
        return now.ok && now.value.requests;
      }, patience)
      .toBe(1);
  });
});
