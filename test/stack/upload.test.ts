// Uploads through a whole stack: edge, functions, storage, queue, release authority, agents.
import { createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { GetQueueUrlCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { developer } from '../../infra/local/identity/tokens.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { deadQueue } from '../../shared/jobs/job.ts';
import { countWordErrors } from '../../shared/registry/word-errors.ts';
import { readHead } from '../../shared/seal/envelope.ts';
import { seeds } from '../seeds.ts';
import { wav } from '../wav.ts';
import { readRecord } from './audit-record.ts';
import { runAuricle } from './auricle.ts';
import { clipBytes, clipLike, clipPath } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

const UPLOAD_MS = 60_000;

/** Tenant of these files; other tests use the same stack. */
const TENANT = 'uploader';
let running: Shared;
let token: string;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-upload-'));
  process.env.XDG_STATE_HOME = folder;
  running = await join();
  token = await running.mint({ ...developer, tenant: TENANT }, 3_600);
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const clip = clipLike('.wav');

const auricle = (...given: string[]) => runAuricle(running, token, given);

const ask = (at: string, init: RequestInit = {}, bearer = token) =>
  fetch(`${running.stack.url}${at}`, { ...init, headers: { ...init.headers, authorization: `Bearer ${bearer}` } });

/** Returns all blobs of a container by name. */
async function stored(container: string): Promise<Map<string, Buffer>> {
  const account = BlobServiceClient.fromConnectionString(storageConnection(running.stack.ports));
  const client = account.getContainerClient(container);
  const all = new Map<string, Buffer>();
  for await (const { name } of client.listBlobsFlat({ prefix: `${TENANT}/` }))
    all.set(name, await client.getBlobClient(name).downloadToBuffer());
  return all;
}

describe('C2 C11 T4 auricle upload', () => {
  it(
    'seals a file, waits for its turn, and prints what was said',
    async () => {
      const { code, out, err } = await auricle('upload', clipPath(clip), '--wait');
      expect([code, out], err).toEqual([0, `${clip.text}\n`]);
      expect(err).toMatch(/sent 100 %/);
      // The notes for an interrupted run are removed.
      expect(readdirSync(path.join(folder, 'auricle', 'uploads'))).toEqual([]);
    },
    UPLOAD_MS,
  );

  it(
    'prints everything as JSON, and the same transcript comes in every format',
    async () => {
      const { code, out } = await auricle('upload', clipPath(clip), '--wait', '--json');
      const value = JSON.parse(out);
      expect([code, value.status, value.text]).toEqual([0, 'done', clip.text]);
      expect(value.outcome.words.map(({ word }: { word: string }) => word).join(' ')).toBe(clip.text);
      expect(value).toMatchObject({ pieces: { total: 1, done: 1 }, transcript: 'held', sealed: true });
      // Deletion follows the outcome, without delaying the transcript.
      await expect
        .poll(async () => ((await (await ask(`/v1/uploads/${value.id}`)).json()) as { audio: string }).audio, {
          timeout: UPLOAD_MS,
        })
        .toBe('deleted');
      const at = `/v1/uploads/${value.id}/transcript`;
      expect(await (await ask(`${at}?format=text`)).text()).toBe(`${clip.text}\n`);
      expect(await (await ask(`${at}?format=srt`)).text()).toMatch(/^1\n00:00:00,\d+ --> /);
      expect(await (await ask(`${at}?format=vtt`)).text()).toMatch(/^WEBVTT\n/);
      const list = (await (await ask('/v1/uploads?limit=1')).json()) as { data: { id: string }[] };
      expect(list.data[0]?.id).toBe(value.id);
    },
    UPLOAD_MS,
  );

  it(
    'A21 leaves nothing in storage, tables or logs that could be read',
    async () => {
      const words = clip.text.split(' ').filter((word) => word.length > 5);
      const outcomes = await stored('outcomes');
      expect(outcomes.size).toBeGreaterThan(0);
      for (const [name, bytes] of outcomes) {
        if (bytes.length > 0) expect([name, readHead(bytes.subarray(0, 4_096)).ok]).toEqual([name, true]);
        for (const word of words) expect(bytes.includes(word), name).toBe(false);
      }
      expect((await stored('uploads')).size).toBe(0);
      const logs = running.logs();
      for (const word of words) expect(logs).not.toContain(word);
      expect(logs).not.toContain('sig=');
      expect(logs).toContain('released eu to aks-westeurope-0');
    },
    UPLOAD_MS,
  );

  it(
    'sends a plain file where the token allows that, and nowhere else',
    async () => {
      const { code, out, err } = await auricle('upload', clipPath(clip), '--plain', '--wait', '--format', 'text');
      expect([code, out], err).toEqual([0, `${clip.text}\n`]);
      const token = await running.mint({ scope: 'uploads' });
      const refused = await auricle('upload', clipPath(clip), '--plain', '--token', token);
      expect([refused.code, refused.err]).toMatchObject([1, expect.stringContaining('sealing_required')]);
    },
    UPLOAD_MS,
  );

  it(
    'R1 transcribes Opus in another zone',
    async () => {
      const one = clipLike('.opus');
      const { code, out, err } = await auricle('upload', clipPath(one), '--zone', 'us', '--wait', '--json');
      expect([code, JSON.parse(out).zone, JSON.parse(out).text], err).toEqual([0, 'us', one.text]);
    },
    UPLOAD_MS,
  );

  it(
    'R3 detects the language of a file for a family of models',
    async () => {
      const file = path.join(import.meta.dirname, '../clips/languages/cancel-es.wav');
      const given = ['upload', file, '--model', 'reference', '--zone', 'eu', '--wait', '--json'];
      const { code, out, err } = await auricle(...given);
      const { model, language, language_confidence: confidence } = JSON.parse(out);
      expect([code, model, language], err).toEqual([0, 'reference-es', 'es']);
      expect(confidence).toBeGreaterThan(0.7);
    },
    UPLOAD_MS,
  );

  it('requeues dead jobs, and drops obsolete ones', async () => {
    const none = { replayed: 0, rerun: 0, dropped: 0 };
    const client = new SQSClient({
      region: 'us-east-1',
      endpoint: `http://127.0.0.1:${running.stack.ports.sqs}`,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    try {
      const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: deadQueue('jobs', 'eu') }));
      await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'no job' }));
    } finally {
      client.destroy();
    }
    for (const dropped of [1, 0]) {
      const { code, out, err } = await auricle('replay', '--json');
      expect([code, JSON.parse(out).zones], err).toEqual([
        0,
        [
          { ...none, zone: 'eu', dropped },
          { ...none, zone: 'us' },
        ],
      ]);
    }
  });
});

describe('C11 T4 the end of an upload', () => {
  interface Notice {
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
  }

  /** Receiver of notices; its first delivery fails, as receivers do. */
  async function receiver() {
    const seen: Notice[] = [];
    let told = () => {};
    const done = new Promise<void>((settle) => {
      told = settle;
    });
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      seen.push({ headers: request.headers, body });
      response.writeHead(204).end();
      told();
    });
    await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
    const { port } = server.address() as AddressInfo;
    return { seen, done, url: `http://127.0.0.1:${port}/hook`, close: () => server.close() };
  }

  it(
    'is notified, signed, to a Deepgram callback, with the transcript ready',
    async () => {
      const hook = await receiver();
      try {
        const query = new URLSearchParams({ model: 'reference-en', callback: hook.url });
        const headers = { 'content-type': 'audio/wav' };
        const answer = await ask(`/v1/listen?${query}`, { method: 'POST', headers, body: clipBytes(clip) });
        expect(answer.status).toBe(200);
        const { request_id: id } = (await answer.json()) as { request_id: string };
        await hook.done;
        const [notice] = hook.seen as [Notice];
        expect(JSON.parse(notice.body)).toMatchObject({ type: 'upload.done', data: { id, status: 'done' } });
        expect(notice.body).not.toContain(clip.text.split(' ').at(-1));
        // The secret is the tenant's: another grant returns the same one.
        const body = JSON.stringify({ model: 'reference-en', callback: hook.url });
        const grant = await ask('/v1/uploads', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
        const { webhook_secret: secret } = (await grant.json()) as { webhook_secret: string };
        const signed = `${notice.headers['webhook-id']}.${notice.headers['webhook-timestamp']}.${notice.body}`;
        const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
        const signature = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
        expect(notice.headers['webhook-signature']).toBe(signature);
        const text = await (await ask(`/v1/uploads/${id}/transcript?format=text`)).text();
        expect(text).toBe(`${clip.text}\n`);
      } finally {
        hook.close();
      }
    },
    UPLOAD_MS,
  );

  it(
    'T4 a long recording is transcribed whole and in order, with visible progress',
    async () => {
      // Twelve minutes: two pieces. Speech at the start, around the cut and at the end, silence between.
      const rate = 16_000;
      const parts = [clip, clipLike('weather.wav'), clipLike('number.wav')];
      const samples = new Int16Array(rate * 720);
      for (const [at, seconds] of [2, 650, 712].entries()) {
        const bytes = clipBytes(parts[at] ?? clip);
        const sound = new Int16Array(bytes.buffer.slice(44));
        samples.set(sound.subarray(0, samples.length - seconds * rate), seconds * rate);
      }
      const file = path.join(folder, 'long.wav');
      writeFileSync(file, wav(samples, rate));
      const { code, out, err } = await auricle('upload', file, '--wait', '--json');
      const value = JSON.parse(out);
      expect([code, value.status], err).toEqual([0, 'done']);
      expect(value.pieces.total).toBeGreaterThan(1);
      expect(value.pieces.done).toBe(value.pieces.total);
      expect(value.text).toBe(parts.map(({ text }) => text).join(' '));
      const starts = value.outcome.segments.map(({ start }: { start: number }) => Math.floor(start));
      expect(starts[0]).toBeLessThan(4);
      expect(starts.some((start: number) => start >= 650 && start < 656)).toBe(true);
      expect(starts.at(-1)).toBeGreaterThanOrEqual(712);
      expect(err).toMatch(/: (planned|working|merging) \d\/\d/);
    },
    3 * UPLOAD_MS,
  );

  // An hour of speech keeps two cores busy for about a minute, so it runs only with many seeds.
  it.runIf(seeds >= 10_000)(
    'T4 an hour’s call is transcribed whole and in order, with visible progress',
    async () => {
      const rate = 16_000;
      const said = ['balance.wav', 'weather.wav', 'number.wav'].map(clipLike);
      const turns = said.map((one) => {
        const sound = new Int16Array(clipBytes(one).buffer.slice(44));
        const pause = new Int16Array(rate * 2);
        return [sound, pause].flatMap((part) => [...part]);
      });
      const samples = new Int16Array(rate * 3_600);
      const spoken: string[] = [];
      for (let at = 0, turn = 0; at + (turns[turn % 3]?.length ?? 0) <= samples.length; turn += 1) {
        samples.set(turns[turn % 3] ?? [], at);
        at += turns[turn % 3]?.length ?? 0;
        spoken.push(...(said[turn % 3]?.text ?? '').split(' '));
      }
      const file = path.join(folder, 'hour.wav');
      writeFileSync(file, wav(samples, rate));
      const { code, out, err } = await auricle('upload', file, '--wait', '--json');
      const value = JSON.parse(out);
      expect([code, value.status], err).toEqual([0, 'done']);
      expect(value.pieces.total).toBeGreaterThanOrEqual(6);
      // Every turn is present and in order; a letter may differ beside another pause.
      expect(countWordErrors(spoken, value.text.split(' ')) / spoken.length).toBeLessThan(0.02);
      const starts = value.outcome.words.map(({ start }: { start: number }) => start);
      expect(starts).toEqual([...starts].sort((one: number, other: number) => one - other));
      expect(starts.at(-1)).toBeGreaterThan(3_580);
      const steps = [...err.matchAll(/: working (\d+)\/\d+/g)].map(([, done]) => Number(done));
      // Concurrent pieces end at about the same time.
      expect(new Set(steps).size, err).toBeGreaterThan(1);
    },
    5 * UPLOAD_MS,
  );
});

describe('C2 A21 the address of an upload', () => {
  const grant = async (body = {}) => {
    const headers = { 'content-type': 'application/json' };
    const told = { model: 'reference-en', sealed: false, ...body };
    const response = await ask('/v1/uploads', { method: 'POST', headers, body: JSON.stringify(told) });
    return (await response.json()) as { id: string; url: string; headers: Record<string, string> };
  };

  it('can be written to and nothing else', async () => {
    const { url, headers } = await grant();
    const put = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(10) });
    expect(put.status).toBe(201);
    expect((await fetch(url)).status).toBe(403);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
    const other = url.replace(/([0-9a-f])\?/, (_, digit: string) => `${digit === '0' ? '1' : '0'}?`);
    expect((await fetch(other, { method: 'PUT', headers, body: new Uint8Array(10) })).status).toBe(403);
  });

  it(
    'takes no file that is sealed for another upload',
    async () => {
      const bytes = clipBytes(clip);
      const { id, url, headers } = await grant({ sealed: true });
      expect((await fetch(url, { method: 'PUT', headers, body: bytes })).status).toBe(201);
      const events = await (await ask(`/v1/uploads/${id}/events`)).text();
      expect(events).toMatch(/event: end\ndata: .*"status":"refused".*envelope_invalid/);
    },
    UPLOAD_MS,
  );

  it('is for one tenant', async () => {
    const { id } = await grant();
    const token = await running.mint({ scope: 'uploads' });
    expect((await ask(`/v1/uploads/${id}`, {}, token)).status).toBe(404);
    expect((await ask(`/v1/uploads/${id}`, { method: 'DELETE' }, token)).status).toBe(404);
    const cancelled = await ask(`/v1/uploads/${id}`, { method: 'DELETE' });
    expect(await cancelled.json()).toMatchObject({ id, status: 'cancelled' });
  });

  it('C11 is not in the record', async () => {
    const { id } = await grant();
    const record = await readRecord(running.stack.url, token, TENANT, 'eu');
    expect(record).toContain('"action":"upload"');
    expect(record).not.toContain('sig=');
    expect(readFileSync(path.join(running.state, 'logs', 'edge.log'), 'utf8')).not.toContain(id);
  });
});
