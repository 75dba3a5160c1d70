// `auricle upload` against an edge and a store in memory.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { upload } from '../../../infra/cli/jobs/upload.ts';
import type { UploadEnv } from '../../../infra/cli/jobs/upload-env.ts';
import { readEvents } from '../../../infra/cli/jobs/upload-follow.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { UPLOAD_BLOCK_BYTES } from '../../../shared/jobs/limits.ts';
import { openSmall } from '../../../shared/seal/envelope-stream.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import { generateZoneKey, importZoneKey } from '../../../shared/seal/zone-key.ts';

const zone = await generateZoneKey();
const privateKey = await importZoneKey(zone.privateJwk);
const id = (n: number) => `01890a5d-ac96-774b-bcce-b3020000000${n}`;
const MiB = 1_048_576;

/** An edge that grants, and a store that keeps blocks as Azure's does. */
class Cloud {
  readonly asked: { line: string; body: unknown }[] = [];
  readonly blocks = new Map<string, Uint8Array>();
  readonly puts: string[] = [];
  blob: Buffer | undefined;
  uploads = 0;
  status = 'granted';
  sealed = true;
  /** Answers of the store to come, before it does what it is told. */
  trouble: (number | 'drop')[] = [];
  /** The process dies after so many requests to the store. */
  dieAfter = Number.POSITIVE_INFINITY;
  events: string[] = [];

  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(String(input));
    return url.hostname === 'edge.test' ? this.#edge(url, init) : this.#store(url, init);
  };

  #edge(url: URL, init: RequestInit = {}): Response {
    const line = `${init.method ?? 'GET'} ${url.pathname}${url.search}`;
    this.asked.push({ line, body: init.body && JSON.parse(String(init.body)) });
    if (init.method === 'POST') {
      this.uploads += 1;
      const answer = {
        id: id(this.uploads),
        url: `http://store.test/uploads/dev/${id(this.uploads)}?sig=secret`,
        headers: { 'x-ms-blob-type': 'BlockBlob' },
        expires: '2030-01-01T00:00:00.000Z',
        tenant: 'dev',
        sealed: this.sealed,
        zone_key: zone.zoneKey,
      };
      return Response.json(answer, { status: 201 });
    }
    if (url.pathname.endsWith('/events')) return new Response(this.events.shift() ?? '');
    if (url.pathname.endsWith('/transcript')) {
      return url.searchParams.get('format') === 'json'
        ? Response.json({ text: 'hello', words: [] })
        : new Response('hi\n');
    }
    return Response.json(this.state(this.status));
  }

  state(status: string, seq = 1) {
    const error = status === 'refused' ? { error: { code: 'audio_empty', message: 'The file is empty.' } } : {};
    return { id: id(this.uploads), status, seq, pieces: { total: 3, done: 1 }, ...error };
  }

  frame(status: string, seq: number): string {
    const over = status === 'done' || status === 'refused';
    return `id: ${seq}\nevent: ${over ? 'end' : 'change'}\ndata: ${JSON.stringify(this.state(status, seq))}\n\n`;
  }

  async #store(url: URL, init: RequestInit = {}): Promise<Response> {
    if (this.dieAfter-- <= 0) throw new Died();
    const trouble = this.trouble.shift();
    if (trouble === 'drop') throw new TypeError('fetch failed');
    if (trouble !== undefined) return new Response('', { status: trouble });
    const block = url.searchParams.get('blockid');
    const body = init.body as Uint8Array;
    expect(new Headers(init.headers).get('x-ms-blob-type')).toBeNull();
    if (block) {
      this.puts.push(Buffer.from(block, 'base64').toString());
      this.blocks.set(block, body.slice());
    } else {
      const ids = [
        ...Buffer.from(body)
          .toString()
          .matchAll(/<Latest>([^<]+)</g),
      ].map(([, one]) => one ?? '');
      this.blob = Buffer.concat(ids.map((one) => this.blocks.get(one) as Uint8Array));
      this.status = 'uploaded';
    }
    return new Response('', { status: 201 });
  }

  async plaintext(n = this.uploads): Promise<Buffer> {
    const expected = { tenant: 'dev', upload: id(n), name: 'upload' };
    const opening = { expected, known: (kid: string) => (kid === zone.zoneKey.kid ? privateKey : undefined) };
    const opened = await openSmall(new Blob([this.blob as Uint8Array<ArrayBuffer>]).stream(), opening, 1e9);
    if (!opened.ok) throw new Error(opened.refusal.detail);
    return Buffer.from(opened.value);
  }
}

class Died extends Error {}

let folder: string;
let cloud: Cloud;
let said: string[];
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-cli-upload-'));
  cloud = new Cloud();
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const journals = () => path.join(folder, 'journals');
const world = (): UploadEnv => ({
  fetch: async (input, init) => {
    try {
      return await cloud.fetch(input, init);
    } catch (error) {
      // The process is gone: nothing that it would do afterwards happens.
      if (error instanceof Died) throw Object.assign(new Error('died'), { died: true });
      throw error;
    }
  },
  now: () => Date.UTC(2026, 0, 1),
  pause: async () => {
    if (cloud.dieAfter < 0) throw new Died();
  },
  folder: journals(),
  print: (line) => said.push(line),
});

const read = (...words: string[]) => readArguments(['upload', '--edge', 'http://edge.test', ...words]);
function given(...words: string[]): Arguments {
  const found = read(...words);
  if ('problem' in found) throw new Error(found.problem);
  return found;
}
const go = (...words: string[]) => upload(given(...words), { authorization: 'Bearer t' }, world());

function file(bytes: number, seed = 0): string {
  const name = path.join(folder, 'call.wav');
  writeFileSync(
    name,
    new Uint8Array(bytes).map((_, at) => (at * 31 + (at >> 8) + seed) % 256),
  );
  return name;
}

describe('C2 A21 T4 auricle upload', () => {
  it.each([1, 65_536, 65_537, 4 * MiB, 4 * MiB + 1, 9 * MiB])('seals a file of %i bytes', async (bytes) => {
    const name = file(bytes);
    const answer = await go(name, '--language', 'en', '--zone', 'eu', '--callback', 'https://hook.test/');
    expect(answer).toMatchObject({ exit: 0, value: { id: id(1), status: 'uploaded' } });
    expect((await cloud.plaintext()).equals(readFileSync(name))).toBe(true);
    expect(cloud.puts).toHaveLength(Math.max(1, Math.ceil(bytes / (4 * MiB))));
    expect(cloud.asked[0]).toEqual({
      line: 'POST /v1/uploads',
      body: {
        model: 'reference-en',
        language: 'en',
        filename: 'call.wav',
        sealed: true,
        zone: 'eu',
        callback: 'https://hook.test/',
      },
    });
    expect(readdirSync(journals())).toEqual([]);
  });

  it('names the command that waits, and asks for the days of --keep-days', async () => {
    const answer = await go(file(1), '--keep-days', '7');
    expect(answer).toMatchObject({ exit: 0, note: `npx auricle uploads wait ${id(1)} prints its transcript` });
    expect(cloud.asked[0]?.body).toMatchObject({ keep_days: 7 });
    expect((await go(file(1), '--keep-days', 'week')).exit).toBe(2);
  });

  it('sends a plain file as it is, and says its size', async () => {
    cloud.sealed = false;
    const name = file(5 * MiB);
    expect((await go(name, '--plain')).exit).toBe(0);
    expect(cloud.blob?.equals(readFileSync(name))).toBe(true);
    expect(cloud.asked[0]?.body).toMatchObject({ sealed: false, bytes: 5 * MiB });
  });

  it('prints each state once while it waits, then the words', async () => {
    cloud.events = [
      cloud.frame('admitted', 2),
      '',
      `: waiting\n\n${cloud.frame('working', 3)}${cloud.frame('working', 4)}${cloud.frame('done', 5)}`,
    ];
    const answer = await go(file(10), '--wait');
    expect(answer).toMatchObject({ exit: 0, text: 'hello', value: { status: 'done', text: 'hello' } });
    expect(said.slice(1)).toEqual(['admitted', 'working'].map((one) => `${id(0)}: ${one} 1/3`));
    expect(cloud.asked.map(({ line }) => line).slice(-4)).toEqual([
      `GET /v1/uploads/${id(1)}/events`,
      `GET /v1/uploads/${id(1)}/events`,
      `GET /v1/uploads/${id(1)}/events`,
      `GET /v1/uploads/${id(1)}/transcript?format=json`,
    ]);
  });

  it('prints another format, and fails when there is no transcript', async () => {
    cloud.events = [cloud.frame('done', 4)];
    expect(await go(file(10), '--wait', '--format', 'srt')).toMatchObject({ exit: 0, text: 'hi' });
    cloud.status = 'granted';
    cloud.events = [cloud.frame('refused', 4)];
    expect(await go(file(11), '--wait')).toMatchObject({
      exit: 1,
      text: expect.stringContaining('The file is empty. (audio_empty)'),
    });
  });

  it('says what is wrong with the command before anything is sent', async () => {
    const name = file(10);
    const said = async (...words: string[]) => {
      const { exit, text } = await go(...words);
      return `${exit} ${text.replaceAll(folder, '')}`;
    };
    expect(await said(path.join(folder, 'none.wav'))).toBe('2 /none.wav does not exist');
    expect(await said(path.join(name, 'below.wav'))).toBe('2 /call.wav/below.wav does not exist');
    expect(await said(folder)).toBe('2  is a folder: name a file in it');
    expect(await said('/dev/null')).toBe('2 /dev/null is not a file');
    expect(await said(name, '--wait', '--format', 'docx')).toBe('2 --format docx is not one of json, text, srt, vtt');
    expect(await said(name, '--format', 'srt')).toMatch(/^2 --format needs --wait: /);
    writeFileSync(name, '');
    expect(await said(name)).toBe('2 /call.wav is empty');
    expect(cloud.asked).toEqual([]);
  });

  it('a file already stored counts as sent after a lost answer', async () => {
    const name = file(10);
    const first = cloud.fetch;
    // The list of blocks is made twice: the answer to the first is lost, and then the file is there.
    let lists = 0;
    Object.assign(cloud, {
      fetch: (async (input, init) => {
        if (!String(input).includes('comp=blocklist')) return first(input, init);
        expect(new Headers(init?.headers).get('if-none-match')).toBe('*');
        lists += 1;
        if (lists === 1) throw new TypeError('fetch failed');
        return new Response(null, { status: 409 });
      }) as typeof fetch,
    });
    cloud.trouble = [];
    expect((await go(name)).exit).toBe(0);
    expect(lists).toBe(2);
  });

  it('goes on after a store that stumbles', async () => {
    cloud.trouble = ['drop', 503, 500, 429];
    const name = file(5 * MiB);
    expect((await go(name)).exit).toBe(0);
    expect((await cloud.plaintext()).equals(readFileSync(name))).toBe(true);
  });

  it('gives up on an unreachable store, and continues in the next run', async () => {
    const name = file(9 * MiB);
    cloud.trouble = [];
    const first = cloud.fetch;
    Object.assign(cloud, {
      fetch: (async (input, init) => {
        if (cloud.puts.length === 1 && String(input).includes('store.test')) throw new TypeError('fetch failed');
        return first(input, init);
      }) as typeof fetch,
    });
    const failed = await go(name);
    expect(failed).toMatchObject({ exit: 1, text: expect.stringMatching(/cannot be reached; run the same command/) });
    Object.assign(cloud, { fetch: first });
    expect((await go(name)).exit).toBe(0);
    expect(cloud.puts).toEqual(['block-000000', 'block-000001', 'block-000002']);
    expect(cloud.uploads).toBe(1);
    expect((await cloud.plaintext()).equals(readFileSync(name))).toBe(true);
  });

  it.each([0, 1, 2, 3])('killed after %i requests, the next run continues with the same key', async (requests) => {
    const name = file(9 * MiB, requests);
    cloud.dieAfter = requests;
    await expect(go(name)).rejects.toThrow();
    const journal = path.join(journals(), readdirSync(journals())[0] as string);
    expect((statSync(journal).mode & 0o777).toString(8)).toBe('600');
    // A truncated journal line is repeated.
    const text = readFileSync(journal, 'utf8');
    if (requests === 2) writeFileSync(journal, text.slice(0, -3));
    cloud.dieAfter = Number.POSITIVE_INFINITY;
    expect((await go(name)).exit).toBe(0);
    expect(cloud.uploads).toBe(1);
    expect((await cloud.plaintext()).equals(readFileSync(name))).toBe(true);
    expect(readdirSync(journals())).toEqual([]);
  });

  it('starts over with a changed file: one plaintext for each number', async () => {
    const name = file(9 * MiB);
    const time = new Date(1_700_000_000_000);
    utimesSync(name, time, time);
    cloud.dieAfter = 2;
    await expect(go(name)).rejects.toThrow();
    // The same size and the same time, but other bytes.
    const changed = new Uint8Array(9 * MiB).fill(7);
    writeFileSync(name, changed);
    utimesSync(name, time, time);
    cloud.dieAfter = Number.POSITIVE_INFINITY;
    expect(await go(name)).toMatchObject({ exit: 1, text: expect.stringContaining('has changed') });
    expect((await go(name)).exit).toBe(0);
    expect(cloud.uploads).toBe(2);
    expect((await cloud.plaintext()).equals(Buffer.from(changed))).toBe(true);
  });

  it('that was interrupted after its last word begins nothing twice', async () => {
    const name = file(10);
    cloud.dieAfter = 1;
    await expect(go(name)).rejects.toThrow();
    cloud.dieAfter = Number.POSITIVE_INFINITY;
    cloud.status = 'working';
    expect(await go(name)).toMatchObject({ exit: 0, value: { id: id(1), status: 'working' } });
    expect([cloud.uploads, readdirSync(journals())]).toEqual([1, []]);
  });

  it('starts over after a cancellation', async () => {
    const name = file(10);
    cloud.dieAfter = 0;
    await expect(go(name)).rejects.toThrow();
    cloud.dieAfter = Number.POSITIVE_INFINITY;
    cloud.status = 'cancelled';
    expect((await go(name)).exit).toBe(0);
    expect(cloud.uploads).toBe(2);
  });

  it.each([[], ['']])('written as %j is wrong', (...words) => {
    expect(read(...words)).toHaveProperty('problem');
  });

  it('reports why an address is refused', async () => {
    cloud.trouble = [403];
    expect(await go(file(10))).toMatchObject({ exit: 1, text: expect.stringContaining('the store answered 403') });
    expect(readdirSync(journals())).toEqual([]);
    writeFileSync(path.join(folder, 'empty'), '');
    expect((await go(path.join(folder, 'empty'))).exit).toBe(2);
  });
});

describe('events', () => {
  it('are read however they are cut', async () => {
    const text = ': hello\n\nid: 1\nevent: change\ndata: {"a":1}\n\ndata: "ü"\n\nid: 3\ndata: cut off';
    for (const size of [1, 3, 1_000]) {
      const bytes = Buffer.from(text);
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size));
          controller.close();
        },
      });
      const seen = [];
      for await (const event of readEvents(body)) seen.push(event);
      expect(seen).toEqual([
        { name: 'change', id: '1', data: '{"a":1}' },
        { name: 'message', id: undefined, data: '"ü"' },
      ]);
    }
  });
});

it('a block is whole records', () => {
  expect(UPLOAD_BLOCK_BYTES % SEAL_SEGMENT_BYTES).toBe(0);
});
