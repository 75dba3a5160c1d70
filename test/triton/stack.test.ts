// `npm start -- --engine triton`: the whole stack, a real Triton in each pool.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';
import { describeLive } from './live.ts';
import { processesOf, sharedBy } from './processes.ts';

/** Two Tritons start slowly on a busy machine; `expect.poll` ends as soon as its condition holds. */
const patience = { timeout: 90_000, interval: 200 };
const spoken = clipLike('balance.wav');
const pools = ['aks-westeurope', 'eks-us-east-1'];
/** The ensemble and its steps. */
const models = ['reference-en', 'vad_preprocess', 'asr_inference', 'nlp_postprocess'];

const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');

/** Counts the models of a pool's Triton that are no ensemble. */
async function networksOf(pool: string): Promise<number> {
  const url = `http://127.0.0.1:${stack.ports[`engine-${pool}`]}/v2/repository/index`;
  const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ ready: true }) });
  const loaded = (await answer.json()) as { name: string }[];
  return loaded.filter(({ name }) => existsSync(path.join(repository, name, '1/model.onnx'))).length;
}

const newFolder = () => mkdtemp(path.join(tmpdir(), 'auricle-triton-stack-'));
let state: string;
let stack: Stack;

beforeAll(async () => {
  state = await newFolder();
  stack = await startStack({ port: 0, state, engine: 'triton' });
}, 180_000);
afterAll(async () => {
  await stack?.stop();
  await rm(state, { recursive: true, force: true });
});

async function transcribe(): Promise<string> {
  const body = new FormData();
  body.set('model', 'reference-en');
  body.set('file', new Blob([clipBytes(spoken)]), spoken.file);
  const headers = { authorization: `Bearer ${stack.token}` };
  const answer = await fetch(`${stack.url}/v1/audio/transcriptions`, { method: 'POST', headers, body });
  const { text, error } = (await answer.json()) as { text?: string; error?: { code: string } };
  return text ?? `${answer.status} ${error?.code}`;
}

const pageOf = async (pool: string) => (await fetch(`http://127.0.0.1:${stack.ports[`agent-${pool}`]}/metrics`)).text();

/** The value of a series in both pools together. */
async function sum(series: RegExp): Promise<number> {
  const pages = await Promise.all(pools.map(pageOf));
  return pages.reduce(
    (total, page) =>
      total +
      Number(
        page
          .split('\n')
          .find((line) => series.test(line))
          ?.split(' ')
          .at(-1) ?? 0,
      ),
    0,
  );
}

describe('T2: the stack on Triton', { timeout: 100_000 }, () => {
  it('transcribes a recording', async () => {
    expect(stack.engine).toBe('triton');
    expect(await transcribe()).toBe(spoken.text);
  });

  it('R14: one scrape of an agent has its own and its Triton’s series', async () => {
    const read = () =>
      Promise.all([
        sum(/^auricle_agent_requests_total\{outcome="ok"\}/),
        ...models.map((model) => sum(new RegExp(`^nv_inference_request_success\\{model="${model}"`))),
      ]);
    const before = await read();
    expect(await transcribe()).toBe(spoken.text);
    // Triton counts a moment after its answer. The clip is one utterance: one more of each.
    await expect.poll(read, patience).toEqual(before.map((count) => count + 1));
    for (const page of await Promise.all(pools.map(pageOf))) {
      expect(page).toMatch(/^auricle_agent_engine_metrics_up 1$/m);
      const series = page.split('\n').filter((line) => line && !line.startsWith('#'));
      expect(series.filter((line) => !/^(auricle_agent_|nv_)/.test(line))).toEqual([]);
      const types = [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
      expect(new Set(types).size).toBe(types.length);
    }
  });

  it('C6: recovers when one pool’s part and the other’s server die', async () => {
    const [one = '', other = ''] = pools.map((pool) => `engine-${pool}`);
    const before = [stack.pid(one), stack.pid(other)];
    const server = (await processesOf(path.join(state, 'engines', 'eks-us-east-1'))).find(({ command }) =>
      /^\S*tritonserver /.test(command),
    );
    process.kill(server?.pid ?? 0, 'SIGKILL');
    stack.kill(one);
    await expect.poll(() => [one, other].map(stack.isReady), patience).toEqual([false, false]);
    await expect.poll(() => [one, other].map(stack.isReady), patience).toEqual([true, true]);
    expect([stack.pid(one), stack.pid(other)].filter((pid) => before.includes(pid))).toEqual([]);
    await expect.poll(transcribe, patience).toBe(spoken.text);
    // Their shared memory is released, too.
    for (const pid of before) await expect.poll(() => sharedBy(pid ?? 0), patience).toEqual([]);
  });

  describeLive(() => ({ stack, state }));

  it('leaves no process and no shared memory when it stops', async () => {
    const parts = pools.map((pool) => stack.pid(`engine-${pool}`) ?? 0);
    // Each pool has a leash, a server and one process for each of its models that is no ensemble.
    const networks = await Promise.all(pools.map(networksOf));
    expect(await processesOf(path.join(state, 'engines'))).toHaveLength(
      networks.reduce((sum, count) => sum + 2 + count, 0),
    );
    await stack.stop();
    expect(await processesOf(state)).toEqual([]);
    for (const pid of parts) expect(await sharedBy(pid)).toEqual([]);
  });
});

describe('T2: npm start -- --engine triton ends with its supervisor', { timeout: 100_000 }, () => {
  it.each([
    { signal: 'SIGKILL', when: 'serving' },
    { signal: 'SIGKILL', when: 'loading' },
    { signal: 'SIGINT', when: 'loading' },
  ] as const)('$signal while $when', async ({ signal, when }) => {
    const folder = await newFolder();
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const given = ['--engine', 'triton', '--parts', 'engine-aks-westeurope', '--state', folder, '--port', '0'];
    const supervisor = spawn(process.execPath, ['infra/local/main.ts', ...given], {
      // The test's own launcher is not the launcher of that stack.
      env: { ...process.env, AURICLE_LAUNCHER: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void supervisor.kill('SIGKILL'));
    let said = '';
    supervisor.stdout.on('data', (text) => {
      said += text;
    });
    const ended = once(supervisor, 'exit');
    if (when === 'serving') await expect.poll(() => said, patience).toMatch(/engine +Triton/);
    const running = () => processesOf(path.join(folder, 'engines'));
    // Leash, server and the first of the models.
    await expect.poll(async () => (await running()).length, patience).toBeGreaterThanOrEqual(3);
    supervisor.kill(signal);
    if (signal === 'SIGINT') expect(await ended).toEqual([0, null]);
    await expect.poll(running, patience).toEqual([]);
    await ended;
  });
});
