// T4, C11 on a whole stack: files pass a stack whose functions host and engine are killed during their work.
// With `SEEDS` of 10,000 the queue server and the agent are killed too: jobs return after their visibility
// timeout.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PartName } from '../../../infra/local/part.ts';
import { running } from '../here.ts';
import { kill } from '../streams/place.ts';

const PATIENCE = { timeout: 150_000, interval: 250 };
const TEST_MS = 200_000;
const clip = readFileSync(path.resolve(import.meta.dirname, '../../clips/balance.wav'));
const thorough = Number(process.env.SEEDS ?? 200) >= 10_000;

async function ask(method: string, place: string, body?: unknown): Promise<Response> {
  return fetch(place.startsWith('http') ? place : `${running.stack.url}${place}`, {
    method,
    headers: { authorization: `Bearer ${running.stack.token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function send(): Promise<string> {
  const asked = { model: 'reference-en', sealed: false, bytes: clip.length };
  const granted = await ask('POST', '/v1/uploads', asked);
  expect(granted.status).toBe(201);
  const { id, url, headers } = (await granted.json()) as { id: string; url: string; headers: Record<string, string> };
  expect((await fetch(url, { method: 'PUT', headers, body: clip })).status).toBe(201);
  return id;
}

/** Reads the status; a request to a dead part has no answer, which is no outcome. */
async function status(id: string): Promise<string> {
  const answer = await ask('GET', `/v1/uploads/${id}`);
  return answer.ok ? ((await answer.json()) as { status: string }).status : 'unknown';
}

/** Reads a transcript, with retries after a refusal as clients do: three at once find a small pool busy. */
async function text(id: string): Promise<string> {
  let said = '';
  const read = async () => {
    const answer = await ask('GET', `/v1/uploads/${id}/transcript?format=text`);
    said = await answer.text();
    if (answer.status === 503) expect(said).toMatch(/no_pool|pool_busy|uploads_unavailable/);
    return answer.status;
  };
  await expect.poll(read, PATIENCE).toBe(200);
  return said;
}

describe('T4: nothing is lost by a whole stack', () => {
  const parts: PartName[] = [
    'functions',
    'engine-aks-westeurope',
    'sqs',
    ...(thorough ? ['agent-aks-westeurope'] : []),
  ];

  it.each(parts)(
    'when %s is killed while files are on their way',
    async (part) => {
      const ids = [await send(), await send()];
      await kill(running.stack, part);
      await expect.poll(() => running.stack.isReady(part), PATIENCE).toBe(true);
      // The edge has to find the functions again, and the queue its messages.
      await expect.poll(async () => (await ask('GET', '/v1/uploads')).status, PATIENCE).toBe(200);
      ids.push(await send());
      for (const id of ids) await expect.poll(() => status(id), PATIENCE).toBe('done');
      const texts = await Promise.all(ids.map(text));
      expect(new Set(texts).size).toBe(1);
      expect(texts[0]?.length).toBeGreaterThan(5);
    },
    TEST_MS,
  );
});
