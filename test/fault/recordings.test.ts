// Recordings: one larger than a part's memory, and others while parts die.
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PartName } from '../../infra/local/part.ts';
import { clipBytes, clipLike } from '../stack/clips.ts';
import { ENGLISH_POOLS, type Running, run } from '../stack/running.ts';
import { wav } from '../wav.ts';

let running: Running;

beforeAll(async () => {
  running = await run({ pools: ENGLISH_POOLS });
}, 60_000);
afterAll(() => running?.end(), 20_000);

const spoken = clipLike('.wav');

async function transcribe(): Promise<{ status: number; text?: string; code?: string }> {
  const form = new FormData();
  form.set('model', 'reference-en');
  form.set('file', new Blob([clipBytes(spoken)]), spoken.file);
  const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.stack.token}` },
    body: form,
  });
  const body = (await answer.json()) as { text?: string; error?: { code: string } };
  return {
    status: answer.status,
    ...(body.text !== undefined && { text: body.text }),
    ...(body.error && { code: body.error.code }),
  };
}

/** Retries until a request is served; the test's own time limit is the bound. */
async function untilServed(): Promise<void> {
  for (;;) {
    const answer = await transcribe().catch(() => undefined);
    if (answer?.status === 200) return expect(answer.text).toBe(spoken.text);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Starts a streaming upload, calls `during` when the first 2 MiB are sent, then sends the rest. */
function upload(during: () => void): Promise<{ status: number; code?: string; retry?: string }> {
  const head = `--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nreference-en\r\n--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`;
  const sound = wav(new Int16Array(8 * 2 ** 20));
  return new Promise((resolve, reject) => {
    const sent = request(`${running.stack.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.stack.token}`, 'content-type': 'multipart/form-data; boundary=x' },
    });
    sent.on('error', reject);
    sent.on('response', async (answer) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      const { error } = JSON.parse(text) as { error?: { code: string } };
      const retry = answer.headers['retry-after'];
      resolve({ status: answer.statusCode ?? 0, ...(error && { code: error.code }), ...(retry && { retry }) });
    });
    sent.write(head);
    sent.write(sound.subarray(0, 2 * 2 ** 20), () => {
      during();
      sent.write(sound.subarray(2 * 2 ** 20));
      sent.end('\r\n--x--\r\n');
    });
  });
}

const MB = 2 ** 20;
const long = clipLike('weather.wav');

/** A recording that is mostly silence: bytes to carry, few words to recognise. */
function recording(bytes: number): Uint8Array<ArrayBuffer> {
  const samples = new Int16Array(bytes / 2);
  const speech = clipBytes(long);
  const words = new Int16Array(speech.buffer.slice(44, speech.length - (speech.length % 2)));
  samples.set(words, 16_000);
  samples.set(words, samples.length - words.length - 16_000);
  return wav(samples);
}

/** Peak memory of a part and its children so far, in bytes, as Linux reports it. */
function peakOf(part: PartName): number {
  const parents = new Map<number, number>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const own = running.stack.pid(part) ?? -1;
  const tree = [...parents.keys()].filter((pid) => pid === own || parents.get(pid) === own);
  const peaks = tree.map((pid) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0));
  return Math.max(...peaks) * 1024;
}

// First in the file: peaks count from the start of a process.
describe('C5 C10 R1 a 100 MB upload streams', () => {
  it('passes Worker and agent without either buffering it whole', async () => {
    const parts: PartName[] = ['edge', 'agent-aks-westeurope', 'agent-eks-us-east-1'];
    const measurable = process.platform === 'linux';
    const before = measurable ? parts.map(peakOf) : [];
    const form = new FormData();
    form.set('response_format', 'verbose_json');
    form.set('file', new Blob([recording(100 * MB)]), 'long.wav');
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.stack.token}`, 'x-auricle-model': 'reference-en' },
      body: form,
    });
    const body = (await answer.json()) as {
      text: string;
      duration: number;
      segments: { start: number; end: number }[];
    };
    expect(answer.status).toBe(200);
    expect(body.text).toBe(`${long.text} ${long.text}`);
    expect(body.segments).toHaveLength(2);
    expect(body.segments[0]?.start).toBeGreaterThan(0.5);
    expect(body.segments[0]?.start).toBeLessThan(2);
    expect(body.segments[1]?.end).toBeGreaterThan(body.duration - 2);
    if (!measurable) return;
    // Half the upload: uncollected garbage stays below it, a buffered upload does not.
    for (const [index, part] of parts.entries()) {
      const grown = peakOf(part) - (before[index] ?? 0);
      expect(grown / MB, part).toBeLessThan(100);
    }
  }, 120_000);
});

describe('C6 a part dies and the next request is served', () => {
  // First, while both pools are healthy: the others end once one of them serves again.
  it('one agent killed: the held body goes to the other pool', async () => {
    running.stack.kill('agent-aks-westeurope', 'SIGKILL');
    const answers = await Promise.all([transcribe(), transcribe(), transcribe(), transcribe()]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
  }, 60_000);

  it('both pools die while a long body streams: refused as lost, with retry advice', async () => {
    const answer = await upload(() => {
      running.stack.kill('agent-aks-westeurope', 'SIGKILL');
      running.stack.kill('agent-eks-us-east-1', 'SIGKILL');
    });
    expect(answer).toMatchObject({ status: 502, code: 'pool_lost' });
    expect(Number(answer.retry)).toBeGreaterThan(0);
    await untilServed();
  }, 60_000);

  it('both agents killed: refused as no pool or lost, then served again', async () => {
    running.stack.kill('agent-aks-westeurope', 'SIGKILL');
    running.stack.kill('agent-eks-us-east-1', 'SIGKILL');
    const answer = await transcribe();
    // Served when the agents recovered before the edge called; otherwise one of two refusals.
    expect(['200', '503 no_pool', '502 pool_lost']).toContain([answer.status, answer.code].filter(Boolean).join(' '));
    await untilServed();
  }, 60_000);

  it('both engines killed', async () => {
    running.stack.kill('engine-aks-westeurope', 'SIGKILL');
    running.stack.kill('engine-eks-us-east-1', 'SIGKILL');
    const answer = await transcribe();
    const said = [answer.status, answer.code].filter(Boolean).join(' ');
    expect(['200', '503 no_pool', '503 pool_busy', '502 pool_lost', '502 engine_failed']).toContain(said);
    await untilServed();
  }, 60_000);

  it('the edge killed', async () => {
    running.stack.kill('edge', 'SIGKILL');
    await untilServed();
  }, 60_000);
});
