// C9 T4 A8 with everything running: uploads and projects while functions or storage are stopped, and after they wake.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PartName } from '../../../infra/local/part.ts';
import { readEntries } from '../../stack/audit-record.ts';
import { running } from '../here.ts';

const PATIENCE = { timeout: 20_000, interval: 100 };
const TEST_MS = 60_000;
const clip = readFileSync(path.resolve(import.meta.dirname, '../../clips/balance.wav'));

interface Made {
  readonly id: string;
  readonly url: string;
  readonly headers: Record<string, string>;
}

interface Answer {
  readonly status: number;
  readonly retryAfter: number;
  readonly made: Partial<Made>;
  readonly text: string;
}

async function ask(method: string, at: string, body?: unknown, key?: string): Promise<Answer> {
  const { url, token } = running.stack;
  const answer = await fetch(`${url}${at}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(key !== undefined && { 'idempotency-key': key }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const retryAfter = Number(answer.headers.get('retry-after'));
  return { status: answer.status, retryAfter, made: JSON.parse(text) as Partial<Made>, text };
}

const upload = (key?: string) =>
  ask('POST', '/v1/uploads', { model: 'reference-en', sealed: false, bytes: clip.length }, key);
const project = (key?: string) =>
  ask('POST', '/v1/projects', { model: 'voice-en', documents: [{ text: 'Good morning.' }] }, key);

/** Returns the ids of all uploads or projects, once functions and storage answer. */
async function list(kind: 'uploads' | 'projects'): Promise<string[]> {
  let ids: string[] = [];
  const read = async () => {
    const { status, text } = await ask('GET', `/v1/${kind}`);
    if (status === 200) ids = (JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id);
    return status;
  };
  await expect.poll(read, PATIENCE).toBe(200);
  return ids;
}

describe('C9 T4: requests refused while a part is stopped have no effect', () => {
  it.each<PartName>(['functions', 'blob'])(
    'and retries with a key make one upload and one project when %s wakes',
    async (part) => {
      const before = { uploads: await list('uploads'), projects: await list('projects') };
      const keys = { upload: randomUUID(), project: randomUUID() };
      running.stack.kill(part, 'SIGSTOP');
      let pauses: number[];
      try {
        const first = await Promise.all([
          upload(),
          upload(),
          project(),
          project(),
          upload(keys.upload),
          project(keys.project),
        ]);
        for (const { status, text } of first)
          expect([status, text]).toEqual([503, expect.stringContaining('_unavailable')]);
        // The circuit is open: five refusals of each kind, each of which would otherwise take ten seconds.
        const more: Answer[] = [];
        for (let tries = 0; tries < 10; tries += 1) more.push(await (tries % 2 === 0 ? upload() : project()));
        expect(new Set(more.map(({ status }) => status))).toEqual(new Set([503]));
        pauses = more.map(({ retryAfter }) => retryAfter);
        expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1);
        expect(Math.max(...pauses)).toBeLessThanOrEqual(30);
      } finally {
        running.stack.kill(part, 'SIGCONT');
      }
      await list('uploads');
      const made = { upload: await upload(keys.upload), project: await project(keys.project) };
      expect([made.upload.status, made.project.status], made.upload.text + made.project.text).toEqual([201, 201]);
      const again = { upload: await upload(keys.upload), project: await project(keys.project) };
      expect(again.upload.made.id).toBe(made.upload.made.id);
      expect(again.project.made.id).toBe(made.project.made.id);
      // The resumed part has dropped what it received before: these later requests were answered.
      expect(await list('uploads')).toEqual([made.upload.made.id, ...before.uploads]);
      expect(await list('projects')).toEqual([made.project.made.id, ...before.projects]);
      const { url = '', headers = {} } = again.upload.made;
      expect((await fetch(url, { method: 'PUT', headers, body: clip })).status).toBe(201);
      const status = async () => (await ask('GET', `/v1/uploads/${made.upload.made.id}`)).text;
      await expect.poll(status, PATIENCE).toContain('"status":"done"');
    },
    TEST_MS,
  );

  it('books repeated uploads once', async () => {
    const token = await running.mint({ tenant: 'dev', scope: 'audit operate' });
    const ends = async () => {
      const entries = await readEntries(running.stack.url, token, 'eu');
      return entries.filter((entry) => entry.includes('"action":"upload.end"')).length;
    };
    await expect.poll(ends, PATIENCE).toBe(2);
  });
});
