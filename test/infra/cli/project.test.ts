// `auricle project` against an edge and a store in memory.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { wrong } from '../../../infra/cli/answer.ts';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { project } from '../../../infra/cli/jobs/project.ts';
import type { UploadEnv } from '../../../infra/cli/jobs/upload-env.ts';
import type { Arguments } from '../../../infra/cli/options.ts';
import { documentId } from '../../../shared/jobs/project-id.ts';
import type { Manifest } from '../../../shared/jobs/project-manifest.ts';
import { readHead } from '../../../shared/seal/envelope.ts';
import { openSmall } from '../../../shared/seal/envelope-stream.ts';
import { generateZoneKey, importZoneKey } from '../../../shared/seal/zone-key.ts';
import { wav } from '../../wav.ts';

const zone = await generateZoneKey();
const privateKey = await importZoneKey(zone.privateJwk);
const ID = '01890a5d-ac96-874b-bcce-b302099a80ff';
const sound = wav(new Int16Array(100).fill(3));

/** An edge that makes projects, and a store beside it. */
class Cloud {
  readonly asked: { line: string; body: Record<string, unknown> | undefined }[] = [];
  readonly files: Uint8Array[] = [];
  status = 'done';
  edition = 0;
  /** Answers of the store to come, and of an edit. */
  trouble: number[] = [];
  editTrouble: number[] = [];
  digest = `sha256:${createHash('sha256').update(sound).digest('hex')}`;

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const url = new URL(String(input));
    const { method = 'GET', body } = init;
    if (url.hostname === 'store.test') {
      const status = this.trouble.shift() ?? 201;
      if (status === 201) this.files.push(new Uint8Array(body as Uint8Array<ArrayBuffer>));
      return new Response('', { status });
    }
    const line = `${method} ${url.pathname}`;
    this.asked.push({ line, body: body ? JSON.parse(String(body)) : undefined });
    if (line === 'POST /v1/projects') return Response.json(this.#made(this.asked.at(-1)?.body), { status: 201 });
    if (line === 'GET /v1/projects') {
      return Response.json({ data: [{ ...this.state(), created: '2026-01-01T00:00:00Z' }] });
    }
    if (url.pathname.endsWith('/events')) return new Response(this.#frame());
    if (url.pathname.endsWith('/manifest')) return Response.json(this.#manifest());
    if (url.pathname.endsWith('/audio')) return new Response(sound);
    const status = method === 'PUT' ? this.editTrouble.shift() : undefined;
    const error = { code: 'edition_passed', message: 'The document was changed meanwhile.' };
    return status ? Response.json({ error }, { status }) : Response.json(this.state(), { status: 202 });
  };

  state() {
    const count = { total: 2, done: this.status === 'done' ? 2 : 1 };
    const one = { index: 0, id: documentId(ID, 0), status: this.status, edition: this.edition, segments: count };
    return {
      id: ID,
      status: this.status,
      seq: 7,
      tenant: 'dev',
      zone_key: zone.zoneKey,
      documents: [{ ...one, blocks: [count, count] }],
      ...(this.status === 'refused' && { error: { code: 'voice_unknown', message: 'The model has no such voice.' } }),
    };
  }

  #made(body: Record<string, unknown> | undefined) {
    const documents = (body?.documents as unknown[]) ?? [];
    const grants = documents.map((_, index) => ({
      id: documentId(ID, index),
      url: `http://store.test/uploads/dev/${index}?sig=secret`,
      headers: { 'x-ms-blob-type': 'BlockBlob' },
    }));
    return { ...this.state(), status_url: `http://edge.test/v1/projects/${ID}`, ...(body?.sealed ? { grants } : {}) };
  }

  #frame(): string {
    return `id: 7\nevent: end\ndata: ${JSON.stringify(this.state())}\n\n`;
  }

  #manifest(): Manifest {
    return {
      v: 1,
      project: ID,
      document: 0,
      edition: 0,
      model: 'voice-en',
      revisions: [],
      rate: 1,
      audio: {
        content_type: 'audio/wav',
        sample_rate: 16_000,
        bits: 16,
        channels: 1,
        samples: 100,
        seconds: 100 / 16_000,
        bytes: sound.length,
        digest: this.digest,
      },
      gaps: { segment_ms: 0, block_ms: 0 },
      blocks: [],
      warnings: [],
    };
  }
}

let cloud: Cloud;
let folder: string;
let said: string[];
beforeEach(() => {
  cloud = new Cloud();
  said = [];
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-project-cli-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function auricle(...given: string[]) {
  const world: UploadEnv = {
    fetch: cloud.fetch,
    now: Date.now,
    pause: async () => {},
    folder,
    print: (line) => void said.push(line),
  };
  const read = readArguments(['project', ...given, '--edge', 'http://edge.test']);
  if ('problem' in read) return wrong(read.problem);
  return project(read as Arguments, { authorization: 'Bearer t' }, world);
}

const file = (name: string, content: string | Uint8Array): string => {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
};

async function opened(bytes: Uint8Array): Promise<{ name: string; upload: string; text: string }> {
  const head = readHead(bytes);
  if (!head.ok) throw new Error('no head');
  const { tenant, upload, name } = head.value.head;
  const body = new Blob([new Uint8Array(bytes)]).stream();
  const read = await openSmall(body, { expected: { tenant, upload, name }, known: () => privateKey }, 1e6);
  if (!read.ok) throw new Error(read.refusal.detail);
  return { name, upload, text: new TextDecoder().decode(read.value) };
}

describe('T3 auricle project', () => {
  it('seals each document here, and the edge sees titles only', async () => {
    const book = {
      title: 'Book',
      documents: [{ title: 'One', text: 'Secret words. More.' }, { blocks: [{ text: 'End.' }] }],
    };
    cloud.trouble.push(503);
    expect(await auricle(file('book.json', JSON.stringify(book)))).toMatchObject({ exit: 0 });
    expect(JSON.stringify(cloud.asked)).not.toContain('Secret');
    expect(cloud.asked[0]?.body).toMatchObject({ model: 'voice-en', title: 'Book', sealed: true });
    const [one, two] = await Promise.all(cloud.files.map(opened));
    expect(one).toMatchObject({ name: 'upload', upload: documentId(ID, 0) });
    expect(JSON.parse(one?.text ?? '')).toEqual({ v: 1, blocks: [{ segments: ['Secret words.', 'More.'] }] });
    expect(two?.upload).toBe(documentId(ID, 1));
  });

  it('waits for the end, prints progress, and saves sound and manifest', async () => {
    const out = path.join(folder, 'out');
    const done = await auricle(file('a.txt', 'Hello.'), '--plain', '--out', out);
    expect([done.exit, said.at(-1)]).toEqual([0, `${ID}: done 2/2 (2/2 blocks)`]);
    expect(cloud.asked[0]?.body).toMatchObject({ sealed: false, documents: [{ title: 'a', text: 'Hello.' }] });
    expect(readdirSync(out).sort()).toEqual(['1.json', '1.wav']);
    expect(new Uint8Array(readFileSync(path.join(out, '1.wav')))).toEqual(sound);
  });

  it('sends nothing for text in another encoding or an unusable output folder', async () => {
    const latin = file('latin.txt', Uint8Array.from([0x63, 0x61, 0x66, 0xe9]));
    expect(await auricle(latin, '--plain')).toMatchObject({ exit: 2, text: `${latin} is not UTF-8 text` });
    const taken = file('taken', '');
    const done = await auricle(file('a.txt', 'Hello.'), '--plain', '--out', taken);
    expect(done).toMatchObject({ exit: 2, text: `${taken} is not a folder and cannot be created` });
    expect(cloud.asked).toEqual([]);
  });

  it('discards sound with another digest', async () => {
    cloud.digest = `sha256:${'0'.repeat(64)}`;
    const out = path.join(folder, 'out');
    const done = await auricle('save', ID, '--out', out);
    expect([done.exit, readdirSync(out)]).toEqual([1, []]);
  });

  it('changes a segment for the next edition, again after a lost race', async () => {
    cloud.edition = 4;
    cloud.editTrouble.push(409);
    expect(await auricle('edit', ID, '0', '7', ' New words. ')).toMatchObject({ exit: 0 });
    const puts = cloud.asked.filter(({ line }) => line.startsWith('PUT'));
    expect(puts.map(({ line }) => line)).toEqual(Array(2).fill(`PUT /v1/projects/${ID}/documents/0/segments/7`));
    const { edition, sealed } = (puts[1]?.body ?? {}) as { edition: number; sealed: string };
    const read = await opened(new Uint8Array(Buffer.from(sealed, 'base64')));
    expect([edition, read]).toEqual([5, { name: '1/pieces/7-5', upload: documentId(ID, 0), text: 'New words.' }]);
  });

  it.each([
    ['status', 'GET'],
    ['delete', 'DELETE'],
  ])('%s', async (verb, method) => {
    expect(await auricle(verb, ID)).toMatchObject({ exit: 0, text: `${ID}: done 2/2 (2/2 blocks)` });
    expect(cloud.asked[0]?.line).toBe(`${method} /v1/projects/${ID}`);
  });

  it('lists them', async () => {
    const done = await auricle('list');
    // Columns are those of `auricle uploads`.
    expect(done).toMatchObject({ exit: 0, text: `${ID}  2026-01-01T00:00:00Z  done       2/2 (2/2 blocks)` });
    expect(cloud.asked).toEqual([{ line: 'GET /v1/projects', body: undefined }]);
  });

  it('says why it was refused', async () => {
    cloud.status = 'refused';
    const done = await auricle(file('a.txt', 'Hello.'), '--wait');
    expect([done.exit, done.text]).toMatchObject([1, expect.stringContaining('(voice_unknown)')]);
  });

  it.each([
    ['nothing', [], 2],
    ['a file that is not there', ['missing.txt'], 2],
    ['too much', ['status', ID, 'more'], 2],
    ['an edit without a text', ['edit', ID, '0', '1'], 2],
  ])('with %s', async (_, given, exit) => {
    expect((await auricle(...given)).exit).toBe(exit);
    expect(cloud.asked).toEqual([]);
  });

  it.each([
    ['empty text', 'a.txt', ' \n ', 'text is empty'],
    ['control characters', 'a.txt', 'a\u0007', 'control'],
    ['JSON of something else', 'a.json', '{"x":1}', 'documents'],
    ['no JSON', 'a.json', '{', 'documents'],
  ])('%s is refused before any request', async (_, name, content, words) => {
    const done = await auricle(file(name, content));
    expect([done.exit, done.text]).toMatchObject([2, expect.stringContaining(words)]);
    expect(cloud.asked).toEqual([]);
  });
});
