// The agent's KServe v2 before a real Triton: requests and answers equal those with the embedded engine,
// including sequences.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, startAgent } from '../../infra/pool/agent/agent.ts';
import { readSettings } from '../../infra/pool/agent/settings/settings.ts';
import { installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton, type Triton } from '../../infra/pool/triton/start.ts';
import { fp32Tensor, int32Tensor, readFp32, readInt32 } from '../../shared/kserve/tensor.ts';
import { type FakeEdge, startFakeEdge } from '../fake/edge.ts';
import { callerOf, row, valuesOf } from '../infra/agent/kserve/call.ts';
import { makeEnvironment } from '../infra/agent/start-agent.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';
import { folder as installation } from './install.ts';

const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');
const [whole, windows] = ['reference-en', 'reference-en-stream'] as const;
const [WINDOW, HOP] = [5_360, 5_120];

let folder: string;
let triton: Triton;
let edge: FakeEdge;
let agent: Agent;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-triton-'));
  edge = await startFakeEdge();
  await convertRepository(repository, path.join(folder, 'python'));
  const installed = await installTriton({ folder: installation });
  triton = await startTriton({ installed, repository: path.join(folder, 'python'), models: [whole, windows] });
  const environment = await makeEnvironment(await mkdtemp(path.join(folder, 'agent')), edge);
  const settings = { ...environment, AURICLE_MODELS: repository, AURICLE_ENGINE_URL: triton.url };
  agent = await startAgent(readSettings(settings), { write: () => {} });
});
afterAll(async () => {
  await agent?.stop();
  await triton?.stop();
  await rm(folder, { recursive: true, force: true });
});

const sentence = callerOf(() => ({ agent, edge }), whole);
const utterance = callerOf(() => ({ agent, edge }), windows);

/** 16 kHz samples of the first seconds of a clip. */
function samples(seconds: number): Float32Array {
  const bytes = clipBytes(clipLike('balance.wav'));
  const sound = new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + bytes.byteLength));
  return Float32Array.from(sound.subarray(0, seconds * 16_000), (value) => value / 32_768);
}

const inputsOf = (sound: Float32Array) => [
  fp32Tensor('AUDIO', sound, [1, sound.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(sound.length), [1, 1]),
];

/** Returns the best letter of each real frame. */
function letters(got: Parameters<typeof valuesOf>[0]): number[] {
  const { outputs } = valuesOf(got);
  const [table, count] = ['LOG_PROBS', 'FRAMES'].map((name) => outputs.find((output) => output.name === name));
  if (!table || !count) throw new Error('an output is missing');
  const [rows, frames] = [readFp32(table), readInt32(count)];
  if (!rows.ok || !frames.ok) throw new Error('other data types');
  const width = table.shape.at(-1) ?? 1;
  return Array.from({ length: frames.value[0] ?? 0 }, (_, n) => {
    const frame = rows.value.subarray(n * width, (n + 1) * width);
    return frame.indexOf(Math.max(...frame));
  });
}

const step = (sound: Float32Array, id: number | string, start: boolean, end: boolean, tenant = 'dev') =>
  utterance.infer(
    { inputs: inputsOf(sound), parameters: { sequence_id: id, sequence_start: start, sequence_end: end } },
    { claims: { tenant } },
  );

const last = (sound: Float32Array, at: number) => at + HOP >= sound.length - (WINDOW - HOP);

async function hear(sound: Float32Array, id: number, tenants: readonly string[]): Promise<number[][]> {
  const heard = tenants.map((): number[] => []);
  for (let at = 0; at === 0 || !last(sound, at - HOP); at += HOP) {
    for (const [n, tenant] of tenants.entries()) {
      const got = await step(sound.subarray(at, at + WINDOW), id, at === 0, last(sound, at), tenant);
      heard[n]?.push(...letters(got));
    }
  }
  return heard;
}

describe('T2 KServe v2 before Triton', () => {
  it('infers, binary and JSON', async () => {
    const inputs = inputsOf(samples(1));
    const [binary, json] = [
      await sentence.infer({ inputs, id: 'r' }),
      await sentence.infer({ inputs }, { form: 'json' }),
    ];
    expect(valuesOf(binary)).toMatchObject({ id: 'r', model: whole });
    expect(letters(json)).toEqual(letters(binary));
    expect(binary.last).toMatchObject({ type: 'final', durationSeconds: 1 });
  });

  it('reports errors in Triton’s words', async () => {
    expect((await sentence.infer({ inputs: [row('NOBODY', 1)] })).refusal).toMatchObject({
      reason: 'tensors_invalid',
      params: { rule: expect.stringMatching(/input/) },
    });
    expect((await sentence.infer({ inputs: inputsOf(samples(1)) }, { head: { version: '7' } })).refusal).toMatchObject({
      reason: 'version_unknown',
    });
  });

  it('describes the model', async () => {
    const described = await sentence.ask({ head: { task: 'metadata' } });
    expect(JSON.parse(described.body.toString())).toMatchObject({ name: whole, inputs: [{ name: 'AUDIO' }, {}] });
    expect((await sentence.ask({ head: { task: 'stats' } })).body.toString()).toContain('"model_stats"');
  });
});

describe('A5 sequences of callers before Triton', () => {
  it('C4 two tenants with one id in turn: each gets its own result', async () => {
    const sound = samples(2);
    const inOne = letters(await sentence.infer({ inputs: inputsOf(sound) }));
    const heard = await hear(sound, 7, ['one', 'two']);
    for (const own of heard) expect(own).toEqual(inOne.slice(0, own.length));
    expect(heard[0]?.length).toBeGreaterThan(40);
  });

  it('a sequence that is not open', async () => {
    expect((await step(samples(0.335), 8, false, false)).refusal).toMatchObject({
      reason: 'sequence_unknown',
      params: { sequence: 8, model: windows },
    });
  });

  it('an idle sequence: Triton receives its end before it would expire', async () => {
    await step(samples(0.335), 9, true, false);
    const ended = async () => (await step(samples(0.335), 9, false, false)).refusal?.reason;
    // Each poll continues the sequence, so polls must be further apart than the idle timeout.
    await expect.poll(ended, { timeout: 15_000, interval: 1_500 }).toBe('sequence_unknown');
    expect((await step(samples(0.335), 9, true, true)).refusal).toBeUndefined();
  });
});
