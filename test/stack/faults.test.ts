import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipBytes, clipLike } from './clips.ts';
import { type Running, run } from './running.ts';

let running: Running;

beforeAll(async () => {
  running = await run();
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

/** Asks until it is answered well; the bound is the test's own time limit. */
async function untilServed(): Promise<void> {
  for (;;) {
    const answer = await transcribe().catch(() => undefined);
    if (answer?.status === 200) return expect(answer.text).toBe(spoken.text);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

describe('C6 a part dies and the next request is served', () => {
  it('one agent killed: the held body goes to the other pool', async () => {
    running.stack.kill('agent-aks-westeurope', 'SIGKILL');
    const answers = await Promise.all([transcribe(), transcribe(), transcribe(), transcribe()]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
  }, 60_000);

  it('both agents killed: refused as no pool or lost, then served again', async () => {
    running.stack.kill('agent-aks-westeurope', 'SIGKILL');
    running.stack.kill('agent-eks-us-east-1', 'SIGKILL');
    const answer = await transcribe();
    if (answer.status !== 200) {
      expect(['no_pool', 'pool_lost']).toContain(answer.code);
      expect([502, 503]).toContain(answer.status);
    }
    await untilServed();
  }, 60_000);

  it('both engines killed', async () => {
    running.stack.kill('engine-aks-westeurope', 'SIGKILL');
    running.stack.kill('engine-eks-us-east-1', 'SIGKILL');
    const answer = await transcribe();
    if (answer.status !== 200) expect(['no_pool', 'pool_lost', 'engine_failed', 'pool_busy']).toContain(answer.code);
    await untilServed();
  }, 60_000);

  it('the edge killed', async () => {
    running.stack.kill('edge', 'SIGKILL');
    await untilServed();
  }, 60_000);
});
