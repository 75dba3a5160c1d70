import { beforeEach, describe, expect, it } from 'vitest';
import { PROJECT_DOCUMENT_BYTES } from '../../../shared/jobs/document.ts';
import { documentId, isProjectId } from '../../../shared/jobs/project-id.ts';
import { PROJECT_SEGMENT_CHARACTERS } from '../../../shared/jobs/split-text.ts';
import { answering } from '../../fake/kserve-agent.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { openProjectOffice, type ProjectOffice } from '../../fake/project-functions.ts';
import { makeToken } from '../authority.ts';
import { nextGeneration, publish, signRelease } from '../publish-release.ts';

const unique = () => `voice-${crypto.randomUUID().slice(0, 8)}`;
const plain = { scope: 'projects', uploads: 'plain' };
const headersOf = async (claims = {}) => ({
  authorization: `Bearer ${await makeToken({ scope: 'projects', ...claims })}`,
  'content-type': 'application/json',
});
const ID = '01890a5d-ac96-874b-bcce-b302099a80ff';

let eu: ProjectOffice;
let us: ProjectOffice;
beforeEach(async () => {
  eu = await openProjectOffice('eu');
  us = await openProjectOffice('us');
});

async function voice(options: Parameters<typeof startAgent>[1] = {}): Promise<string> {
  const model = unique();
  await startAgent(model, { task: 'synthesize', ...options });
  return model;
}

const send = async (path: string, method: string, body?: unknown, claims: object = plain): Promise<Response> =>
  ask(path, { method, headers: await headersOf(claims), ...(body !== undefined && { body: JSON.stringify(body) }) });

const make = (body: unknown, claims: object = plain) => send('/v1/projects', 'POST', body, claims);

describe('T3 a new project', () => {
  it('is created with its text, sealed by document before it is stored', async () => {
    const model = await voice();
    const documents = [{ title: 'One', text: 'Hello there. Bye.\n\nEnd.' }, { blocks: [{ segments: ['Only this.'] }] }];
    const answer = await make({ model, documents, title: 'Book' });
    expect(answer.status).toBe(201);
    const made = (await answer.json()) as { id: string; documents: { id: string }[] } & Record<string, unknown>;
    expect(isProjectId(made.id)).toBe(true);
    expect(made).toMatchObject({ object: 'project', status: 'working', title: 'Book', zone: 'eu' });
    expect(made).not.toHaveProperty('grants');
    expect(JSON.stringify(eu.requests)).not.toContain('Hello');
    expect(eu.requests[0]?.body).toMatchObject({ commitment: expect.stringMatching(/^c1:[0-9a-f]{64}$/) });
    const texts: unknown[] = [];
    for (const [index, { id }] of made.documents.entries()) {
      const file = eu.files.get(`/uploads/acme/${id}`) ?? new Uint8Array();
      expect(Buffer.from(file).includes('Hello')).toBe(false);
      const opened = await eu.open(file);
      expect([opened.upload, opened.name]).toEqual([documentId(made.id, index), 'upload']);
      texts.push(JSON.parse(opened.text));
    }
    expect(texts).toEqual([
      { v: 1, blocks: [{ segments: ['Hello there.', 'Bye.'] }, { segments: ['End.'] }] },
      { v: 1, blocks: [{ segments: ['Only this.'] }] },
    ]);
  });

  it('a sealed one gets upload addresses for its documents', async () => {
    const model = await voice({ zone: 'us' });
    const body = { model, sealed: true, documents: [{ content_type: 'text/plain' }, {}] };
    const made = (await (await make(body, { scope: 'projects' })).json()) as { grants: { id: string; url: string }[] };
    expect(made.grants.map(({ url }) => new URL(url).hostname)).toEqual(['storage-us.test', 'storage-us.test']);
    expect(us.files.size).toBe(0);
  });

  it.each([
    ['cpu', true],
    ['gpu', false],
  ] as const)('T5 a voice on %s pools is light: %s', async (accelerator, light) => {
    const model = await voice({ accelerator });
    await make({ model, documents: [{ text: 'Hello.' }] });
    expect(eu.requests[0]?.body).toMatchObject({ project: { light } });
  });

  it('T5 a canary on a cpu pool makes no project light', async () => {
    const [stable, canary] = ['b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
    const model = await voice({ accelerator: 'gpu', revision: stable });
    await startAgent(model, { task: 'synthesize', accelerator: 'cpu', revision: canary });
    const models = { [model]: { stable, canary: { revision: canary, share: 0.5 } } };
    await publish(await signRelease({ v: 1, generation: nextGeneration(), models }));
    await make({ model, documents: [{ text: 'Hello.' }] });
    expect(eu.requests[0]?.body).toMatchObject({ project: { light: false } });
  });

  it.each<[string, object, object, string]>([
    ['no document', { documents: [] }, plain, 'field_invalid'],
    ['too many documents', { documents: Array.from({ length: 33 }, () => ({ text: 'x' })) }, plain, 'field_invalid'],
    ['neither text nor blocks', { documents: [{}] }, plain, 'field_invalid'],
    ['both', { documents: [{ text: 'x', blocks: [{ text: 'x' }] }] }, plain, 'field_invalid'],
    ['an unknown field', { documents: [{ text: 'x' }], colour: 1 }, plain, 'field_invalid'],
    ['a gap too long', { documents: [{ text: 'x' }], gaps: { segment_ms: 99_999 } }, plain, 'field_invalid'],
    ['a rate out of bounds', { documents: [{ text: 'x' }], rate: 9 }, plain, 'field_invalid'],
    ['empty text', { documents: [{ text: ' \n\n ' }] }, plain, 'text_empty'],
    ['control characters', { documents: [{ text: 'a\u0007b' }] }, plain, 'text_invalid'],
    ['a long segment', { documents: [{ blocks: [{ segments: ['x'.repeat(100_000)] }] }] }, plain, 'text_too_long'],
    [
      'C10 text longer than agents read',
      { documents: [{ text: 'x '.repeat(PROJECT_DOCUMENT_BYTES / 2 + 1) }] },
      plain,
      'field_invalid',
    ],
    ['text that is to be sealed', { documents: [{ text: 'x' }], sealed: true }, plain, 'field_invalid'],
    ['plain text of one who seals', { documents: [{ text: 'x' }] }, { scope: 'projects' }, 'sealing_required'],
    [
      'a forbidden language',
      { documents: [{ text: 'x' }], language: 'zh' },
      { ...plain, languages: ['en'] },
      'language_forbidden',
    ],
    ['a language the voice has not', { documents: [{ text: 'x' }], language: 'zh' }, plain, 'language_unknown'],
    ['no scope', { documents: [{ text: 'x' }] }, { scope: 'uploads' }, 'scope_missing'],
  ])('with %s is refused, and nothing is made', async (_, body, claims, code) => {
    const model = await voice();
    expect((await readRefusal(await make({ model, ...body }, claims))).code).toBe(code);
    expect([...eu.requests, ...us.requests]).toEqual([]);
  });

  it('with ten megabytes of text is refused before it was read', async () => {
    const model = await voice();
    const answer = await make({ model, documents: [{ text: 'word '.repeat(2_000_000) }] });
    expect(await readRefusal(answer)).toMatchObject({ status: 413, code: 'body_too_large' });
    expect(eu.requests).toEqual([]);
  });

  it('with 100,000 characters and no full stop is cut', async () => {
    const model = await voice();
    expect((await make({ model, documents: [{ text: 'x'.repeat(100_000) }] })).status).toBe(201);
    const [file = new Uint8Array()] = eu.files.values();
    const { blocks } = JSON.parse((await eu.open(file)).text) as { blocks: { segments: string[] }[] };
    const lengths = blocks.flatMap(({ segments }) => segments.map(({ length }) => length));
    expect(Math.max(...lengths)).toBeLessThanOrEqual(PROJECT_SEGMENT_CHARACTERS);
  });

  it('refuses an unknown voice and a model without speech', async () => {
    const documents = [{ text: 'x' }];
    expect((await readRefusal(await make({ model: unique(), documents }))).code).toBe('model_unknown');
    const hears = unique();
    await startAgent(hears);
    expect((await readRefusal(await make({ model: hears, documents }))).code).toBe('model_unfit');
  });

  it('is deleted when its text cannot be stored', async () => {
    const model = await voice();
    eu.storageFails = true;
    expect(await readRefusal(await make({ model, documents: [{ text: 'x' }] }))).toMatchObject({ status: 503 });
    await expect.poll(() => eu.requests.at(-1)?.line).toMatch(/^DELETE \/api\/projects\/acme\//);
  });
});

describe('T3 a project', () => {
  it('shows documents and blocks without internal fields', async () => {
    const blocks = [{ segments: 2, done: 1 }];
    const refusal = { reason: 'voice_unknown' } as const;
    eu.row({
      id: ID,
      callback: 'https://hook.test/secret',
      documents: [
        {
          id: documentId(ID, 0),
          index: 0,
          status: 'working',
          edition: 3,
          segments: 2,
          segmentsDone: 1,
          blocks,
          audio: 'none',
        },
        {
          id: documentId(ID, 1),
          index: 1,
          status: 'refused',
          edition: 0,
          segments: 0,
          segmentsDone: 0,
          blocks: [],
          audio: 'none',
          refusal,
        },
      ],
    });
    const answer = await send(`/v1/projects/${ID}`, 'GET');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const shown = (await answer.json()) as Record<string, unknown>;
    expect(shown).toMatchObject({
      id: ID,
      status: 'working',
      documents: [
        { index: 0, edition: 3, segments: { total: 2, done: 1 }, blocks: [{ total: 2, done: 1 }] },
        { index: 1, error: { code: 'voice_unknown', message: 'The model has no such voice.' } },
      ],
    });
    expect(JSON.stringify(shown)).not.toContain('hook.test');
  });

  it('forged and foreign ids are unknown', async () => {
    eu.row({ id: ID, tenant: 'other' });
    for (const id of [ID, 'x', documentId(ID, 0), '01890a5d-ac96-774b-bcce-b302099a8057', `${ID}%2F..`])
      expect(await readRefusal(await send(`/v1/projects/${id}`, 'GET'))).toMatchObject({ code: 'project_unknown' });
    for (const path of ['documents/32/audio', 'documents/00/audio', 'documents/-1/manifest', 'documents/x/audio'])
      expect((await readRefusal(await send(`/v1/projects/${ID}/${path}`, 'GET'))).code).toBe('document_unknown');
    const edit = await send(`/v1/projects/${ID}/documents/0/segments/1000`, 'PUT', { text: 'x' });
    expect((await readRefusal(edit)).code).toBe('segment_unknown');
  });

  it('is listed, followed, run again and deleted', async () => {
    eu.row({ id: ID, status: 'done' });
    const list = (await (await send('/v1/projects', 'GET')).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual([ID]);
    const events = await (await send(`/v1/projects/${ID}/events`, 'GET')).text();
    expect(events).toMatch(/^id: 4\nevent: end\ndata: {"object":"project"/);
    await send(`/v1/projects/${ID}/rerun`, 'POST');
    expect(eu.requests.at(-1)?.line).toBe(`POST /api/projects/acme/${ID}/rerun`);
    expect(await (await send(`/v1/projects/${ID}`, 'DELETE')).json()).toMatchObject({ status: 'cancelled' });
  });
});

describe('T3 a change of one segment', () => {
  const at = `/v1/projects/${ID}/documents/0/segments/7`;

  it('is sealed for the next edition, and again after a lost race', async () => {
    eu.row({ id: ID });
    eu.refusals.push('edition_passed');
    const answer = await send(at, 'PUT', { text: ' New  words. ' });
    expect(answer.status).toBe(202);
    const puts = eu.requests.filter(({ line }) => line.startsWith('PUT'));
    expect(puts.map(({ line }) => line)).toEqual(Array(2).fill(`PUT /api/projects/acme/${ID}/documents/0/segments/7`));
    const { edition, file } = (puts[1]?.body ?? {}) as { edition: number; file: string };
    const opened = await eu.open(new Uint8Array(Buffer.from(file, 'base64')));
    expect([edition, opened.name, opened.upload, opened.text]).toEqual([
      1,
      '1/pieces/7-1',
      documentId(ID, 0),
      'New words.',
    ]);
  });

  it('may come sealed, and is passed on as it is', async () => {
    eu.row({ id: ID });
    const sealed = Buffer.from('sealed').toString('base64');
    expect((await send(at, 'PUT', { edition: 5, sealed }, { scope: 'projects' })).status).toBe(202);
    expect(eu.requests.at(-1)?.body).toEqual({ edition: 5, file: sealed });
  });

  it.each<[string, unknown, object, string]>([
    ['nothing', {}, plain, 'field_invalid'],
    ['empty text', { text: ' ' }, plain, 'text_empty'],
    ['too much', { text: 'x'.repeat(PROJECT_SEGMENT_CHARACTERS + 1) }, plain, 'text_too_long'],
    ['plain text of one who seals', { text: 'x' }, { scope: 'projects' }, 'sealing_required'],
    ['what is no base64', { edition: 1, sealed: '%%' }, plain, 'field_invalid'],
  ])('with %s is refused', async (_, body, claims, code) => {
    eu.row({ id: ID });
    expect((await readRefusal(await send(at, 'PUT', body, claims))).code).toBe(code);
    expect(eu.requests).toEqual([]);
  });
});

describe('T3 spoken documents', () => {
  it('is opened by an agent of its zone: sound and manifest', async () => {
    const model = unique();
    const agent = await startAgent(model, { task: 'synthesize', zone: 'us' });
    us.row({ id: ID, model, status: 'done' });
    const sound = new Uint8Array(200_000).fill(7);
    agent.script = () => answering(model, sound, { 'content-type': 'audio/wav' });
    const audio = await send(`/v1/projects/${ID}/documents/0/audio`, 'GET');
    expect([audio.status, audio.headers.get('content-type')]).toEqual([200, 'audio/wav']);
    expect(new Uint8Array(await audio.arrayBuffer())).toEqual(sound);
    expect(agent.seen[0]?.head).toMatchObject({
      task: 'document',
      document: documentId(ID, 0),
      run: 1,
      name: 'transcript-2',
      part: 'audio',
      read: { etag: '"1"' },
    });
    await (await send(`/v1/projects/${ID}/documents/0/manifest`, 'GET')).arrayBuffer();
    expect(agent.seen[1]?.head).toMatchObject({ part: 'manifest' });
  });

  it('that is not there is refused as the functions refuse it', async () => {
    eu.row({ id: ID });
    eu.refusals.push('speech_gone');
    const answer = await send(`/v1/projects/${ID}/documents/0/audio`, 'GET');
    expect((await readRefusal(answer)).code).toBe('speech_gone');
  });
});
