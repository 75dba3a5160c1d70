import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipLike, clipPath } from '../stack/clips.ts';
import { type Running, run } from '../stack/running.ts';
import { interpreterOf } from './install.ts';
import { type Python, startPython } from './python.ts';

let running: Running;
let triton: Python;

beforeAll(async () => {
  running = await run();
  triton = startPython('triton_calls', { EDGE: running.stack.url, TOKEN: running.stack.token });
});
afterAll(async () => {
  triton?.end();
  await running?.end();
});

const spoken = clipLike('balance.wav');
const file = clipPath(spoken);
const call = <T>(name: string, given: Record<string, unknown> = {}) => triton.call<T>(name, given);
interface Read {
  readonly text: string;
  readonly id: string;
  readonly model: string;
}

/** Similarity of letters without a decoder to the words. */
function likeness(text: string): number {
  const words = spoken.text.split(' ');
  const heard = new Set(text.split(' '));
  return words.filter((word) => heard.has(word)).length / words.length;
}

describe('T2 C10 tritonclient, unmodified', () => {
  it('runs the example of edge/protocol/kserve/README.md', () => {
    const root = path.join(import.meta.dirname, '..', '..');
    const [, example = ''] =
      /```python\n([\s\S]*?)```/.exec(readFileSync(path.join(root, 'edge/protocol/kserve/README.md'), 'utf8')) ?? [];
    const env = { ...process.env, EDGE: running.stack.url.replace('http://', ''), TOKEN: running.stack.token };
    const printed = execFileSync(interpreterOf('clients'), ['-c', example], { cwd: root, env, encoding: 'utf8' });
    expect(likeness(printed.trim())).toBeGreaterThan(0.6);
  });

  it('asks for health', async () => {
    expect(await call('health')).toEqual({ live: true, ready: true, model: true, unknown: false });
  });

  it('reads metadata, configuration and statistics', async () => {
    expect(await call('metadata')).toMatchObject({
      server: { name: 'auricle', extensions: expect.arrayContaining(['sequence']) },
      model: {
        name: 'reference-en',
        inputs: [
          { name: 'AUDIO', datatype: 'FP32' },
          { name: 'AUDIO_LENGTH', datatype: 'INT32' },
        ],
        outputs: [{ name: 'LOG_PROBS' }, { name: 'FRAMES' }],
      },
      version: 'reference-en',
      config: 'reference-en',
      stats: 'reference-en',
    });
  });

  it('infers with binary tensors: the words that were spoken', async () => {
    const read = await call<Read>('infer', { file });
    expect(read).toMatchObject({ id: 'r-1', model: 'reference-en' });
    expect(likeness(read.text)).toBeGreaterThan(0.6);
  });

  it('infers the same in JSON both ways, also for unlisted outputs', async () => {
    const short = { file, seconds: 1 };
    const { text } = await call<Read>('infer', short);
    expect(text).not.toBe('');
    expect((await call<Read>('infer', { ...short, binary_in: false })).text).toBe(text);
    expect((await call<Read>('infer', { ...short, binary_out: false })).text).toBe(text);
    expect((await call<Read>('infer', { ...short, binary_in: false, binary_out: false })).text).toBe(text);
    expect((await call<Read>('infer', { ...short, listed: false })).text).toBe(text);
  });

  it.each(['gzip', 'deflate'])('infers the same packed with %s, both ways', async (packed) => {
    const { text } = await call<Read>('infer', { file });
    expect((await call<Read>('infer', { file, packed })).text).toBe(text);
    expect((await call<Read>('infer', { file, packed, binary_in: false, seconds: 1 })).text).not.toBe('');
  });

  it('infers several at once', async () => {
    const texts = await call<string[]>('infer_at_once', { file, times: 6 });
    expect(new Set(texts).size).toBe(1);
    expect(likeness(texts[0] ?? '')).toBeGreaterThan(0.6);
  });
});

describe('T2 C4 refusals of tritonclient', () => {
  it.each([
    ['no token', '401', /No token was sent/],
    ['a wrong token', '401', /not valid/],
    ['an unknown model', '404', /"nobody" does not exist/],
    ['an unknown version', '404', /no version 77/],
    ['a wrong input', '400', /NOBODY/],
    ['an unknown output', '400', /NONE/],
    ['a classification', '400', /classification/],
    ['a packed answer', '404', /"nobody" does not exist/],
    ['loading a model', '501', /model_repository/],
    ['unloading a model', '501', /model_repository/],
    ['the repository', '501', /model_repository/],
    ['shared memory', '501', /shared_memory/],
    ['trace settings', '501', /trace/],
    ['log settings', '501', /logging/],
  ])('%s: %s', async (what, status, message) => {
    const raised = await call<{ status: string; message: string; text: string }>('refused', { what });
    expect(raised?.status).toBe(status);
    expect(raised?.message).toMatch(message);
    expect(raised?.text).toContain(raised?.message);
  });
});

describe('A5 tritonclient’s sequences', () => {
  it.each([
    ['as a number', 4_711],
    ['as text', 'a-sequence'],
  ])('a recording window by window, its id %s', async (_, sequence) => {
    const { text } = await call<Read>('infer', { file });
    const streamed = await call<{ steps: number; text: string }>('stream', { file, sequence });
    expect(streamed.steps).toBeGreaterThan(3);
    expect(streamed.text).toBe(text);
  });

  it('several in turn: each receives only its own results', async () => {
    const { text } = await call<Read>('infer', { file });
    expect(await call('streams', { file, sequences: [1, 2, 'three', 'four'] })).toEqual(Array(4).fill(text));
  });

  it('C4 two subjects with sequence id 1 keep separate state', async () => {
    const { text } = await call<Read>('infer', { file });
    const claims = { tenant: 'acme', scope: 'infer' };
    const tokens = await Promise.all(['alice', 'bob'].map((sub) => running.mint({ ...claims, sub })));
    expect(await call('callers', { file, tokens })).toEqual([text, text]);
  });

  it('C4 a refused second START ends the sequence; a session restarts it', async () => {
    const open = {
      status: '409',
      message: expect.stringMatching(/^sequence 1 of model 'reference-en-stream' is open:.*x-auricle-session/),
    };
    expect(await call('restart', { sequence: 1 })).toEqual([open, expect.anything(), expect.anything()]);
    expect(await call('restart', { sequence: 1, session: 'process 1' })).toEqual([]);
  });

  it('a sequence that was never started', async () => {
    expect(await call('unstarted', { sequence: 99 })).toEqual({
      status: '400',
      message:
        "inference request for sequence 99 to model 'reference-en-stream' must specify the START flag on the first request of the sequence",
    });
  });

  it('an idle sequence expires and has to be started again', async () => {
    await call('abandon', { sequence: 55 });
    await expect
      .poll(() => call<{ message: string } | null>('unstarted', { sequence: 55 }), { timeout: 20_000, interval: 1_500 })
      .toMatchObject({ message: expect.stringContaining('must specify the START flag') });
  });
});

describe('C6 A5 a sequence whose agent dies', () => {
  it('is refused by the next agent and continues after a new START', async () => {
    await call('begin', { sequence: 77 });
    for (const part of ['agent-aks-westeurope', 'agent-eks-us-east-1'] as const) running.stack.kill(part);
    // The answer is 502 or 503 until an agent is back: errors that the client may retry.
    const patience = { timeout: 25_000, interval: 200 };
    await expect
      .poll(() => call<{ status: string } | null>('unstarted', { sequence: 77 }), patience)
      .toMatchObject({
        status: '400',
        message: expect.stringContaining('must specify the START flag'),
      });
    expect(await call('stream', { file, sequence: 77 })).toMatchObject({
      text: (await call<Read>('infer', { file })).text,
    });
  });
});

describe('T2 generation by hand, which the client has no call for', () => {
  const body = JSON.stringify({ id: 'g-1', AUDIO: Array(1_600).fill(0), AUDIO_LENGTH: 1_600 });
  interface Generated {
    readonly status: number;
    readonly type: string;
    readonly body: string;
  }

  it('one JSON', async () => {
    const generated = await call<Generated>('generate', { ending: 'generate', body });
    expect(generated).toMatchObject({ status: 200, type: 'application/json' });
    expect(JSON.parse(generated.body)).toMatchObject({ id: 'g-1', model_name: 'reference-en', FRAMES: 2 });
  });

  it('a stream of events', async () => {
    const generated = await call<Generated>('generate', { ending: 'generate_stream', body });
    expect(generated).toMatchObject({ status: 200, type: expect.stringMatching(/^text\/event-stream/) });
    expect(JSON.parse(generated.body.replace(/^data: /, ''))).toMatchObject({ FRAMES: 2 });
  });

  it('a request that is wrong is an error, also of a stream', async () => {
    const generated = await call<Generated>('generate', { ending: 'generate_stream', body: '{"AUDIO":"x"}' });
    expect(generated.status).toBe(400);
    expect(JSON.parse(generated.body)).toEqual({ error: expect.stringMatching(/AUDIO/) });
  });
});
