import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { follow } from '../../../edge/jobs/follow.ts';
import { gateName } from '../../../edge/ledger/record.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { UPLOAD_FOLLOWERS_MAX } from '../../../shared/jobs/limits.ts';
import { isUploadId } from '../../../shared/jobs/paths.ts';
import { ok } from '../../../shared/result.ts';
import { final, segment } from '../../fake/agent.ts';
import { FakeFunctions, zoneKey } from '../../fake/functions.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const bearer = async (claims = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });

let eu: FakeFunctions;
let us: FakeFunctions;
beforeEach(() => {
  eu = new FakeFunctions('eu');
  us = new FakeFunctions('us');
});

async function create(body: unknown, claims = {}): Promise<Response> {
  const headers = { ...(await bearer(claims)), 'content-type': 'application/json' };
  return ask('/v1/uploads', { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Reads the outbox as an operator: a tenant's own read would add an event to it. */
const events = async (tenant: string) => {
  const headers = await bearer({ tenant: 'ops', scope: 'operate' });
  const page = (await (await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers })).json()) as {
    rows: { event: Record<string, unknown> }[];
  };
  return page.rows.map(({ event }) => event);
};

/** Returns the commitment that erasures and searches use in that zone. */
const commitmentOf = (subject: string, zone: string): Promise<string> | string =>
  (env as unknown as Bindings).GATE.getByName(gateName({ tenant: 'acme', zones: [zone] }, [zone])).commitmentOf(
    subject,
  );

describe('C2 T4 a new upload', () => {
  it('is granted with an upload address and the zone’s public key', async () => {
    const model = unique();
    await startAgent(model, { zone: 'us' });
    const told = {
      model,
      filename: 'call.wav',
      content_type: 'audio/wav',
      bytes: 900,
      formats: ['srt', 'srt', 'json'],
    };
    const answer = await create({ ...told, callback: 'https://hook.test/x' });
    expect(answer.status).toBe(201);
    const grant = (await answer.json()) as Record<string, unknown>;
    expect(grant).toMatchObject({
      object: 'upload',
      status: 'granted',
      tenant: 'acme',
      zone: 'us',
      sealed: true,
      zone_key: zoneKey,
      max_bytes: 1_000,
      headers: { 'x-ms-blob-type': 'BlockBlob' },
      status_url: `http://edge.test/v1/uploads/${grant.id}`,
    });
    expect(answer.headers.get('location')).toBe(grant.status_url);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(isUploadId(String(grant.id))).toBe(true);
    expect(eu.requests).toEqual([]);
    expect(us.requests).toMatchObject([
      {
        line: 'POST /api/uploads',
        claims: { tenant: 'acme' },
        body: {
          id: grant.id,
          tenant: 'acme',
          subject: 'alice',
          commitment: await commitmentOf('alice', 'us'),
          class: 'batch',
          model,
          filename: 'call.wav',
          contentType: 'audio/wav',
          bytes: 900,
          sealed: true,
          formats: ['srt', 'json'],
          callback: 'https://hook.test/x',
          zone: 'us',
          keepDays: 0,
        },
      },
    ]);
  });

  it('C11 is recorded as an attempt with an end, and a refused one as denied', async () => {
    const model = unique();
    await startAgent(model);
    const tenant = `t-${unique()}`;
    expect((await create({ model }, { tenant, audit: 'strict' })).status).toBe(201);
    expect((await create({ model, sealed: false }, { tenant, audit: 'strict' })).status).toBe(403);
    const said = await events(tenant);
    expect(said).toMatchObject([
      { type: 'inference.attempt', tenant, action: 'upload', model, class: 'batch' },
      { type: 'inference.complete', tenant, action: 'upload', model, status: 201 },
      { type: 'inference.denied', tenant, action: 'upload', reason: 'sealing_required' },
    ]);
    expect(JSON.stringify(said)).not.toContain('sig=');
  });

  it('takes a place at the gate', async () => {
    const model = unique();
    await startAgent(model);
    const claims = { tenant: `t-${unique()}`, audit: 'strict', allowance: { requestsPerMinute: 1 } };
    expect((await create({ model }, claims)).status).toBe(201);
    expect(await readRefusal(await create({ model }, claims))).toMatchObject({
      status: 429,
      code: 'allowance_requests',
    });
    expect(eu.requests).toHaveLength(1);
  });

  it('waits for absent agents, but not for an unknown model', async () => {
    const model = unique();
    const agent = await startAgent(model, { zone: 'eu' });
    expect(await readRefusal(await create({ model: unique() }))).toMatchObject({ status: 404, code: 'model_unknown' });
    agent.leave();
    expect((await create({ model, zone: 'eu' })).status).toBe(201);
  });

  it('goes to the first zone of the token, whatever a processor elsewhere costs', async () => {
    const model = unique();
    await startAgent(model, { zone: 'us', accelerator: 'cpu' });
    await startAgent(model, { zone: 'eu', accelerator: 'gpu' });
    expect(await (await create({ model })).json()).toMatchObject({ zone: 'eu' });
  });

  it('R1 A21 stays in the zones of the token', async () => {
    const model = unique();
    await startAgent(model, { zone: 'us' });
    const onlyEu = { zones: ['eu'] };
    expect(await readRefusal(await create({ model }, onlyEu))).toMatchObject({ code: 'residency_mismatch' });
    expect(await readRefusal(await create({ model, zone: 'us' }, onlyEu))).toMatchObject({
      code: 'residency_mismatch',
    });
    expect(await readRefusal(await create({ model }, { zones: ['mars'] }))).toMatchObject({
      code: 'residency_mismatch',
    });
    expect([...eu.requests, ...us.requests]).toEqual([]);
  });

  it.each<[string, object, object, string, string]>([
    ['no model', {}, {}, 'field_missing', 'The field "model" is missing.'],
    ['an empty model', { model: '' }, {}, 'field_invalid', 'model'],
    ['an unknown field', { model: 'm', colour: 'red' }, {}, 'field_invalid', 'colour'],
    ['a size of nothing', { model: 'm', bytes: 0 }, {}, 'field_invalid', 'bytes'],
    ['a callback that is no address', { model: 'm', callback: 'file:///etc' }, {}, 'field_invalid', 'callback'],
    ['an unknown format', { model: 'm', formats: ['doc'] }, {}, 'field_invalid', 'formats'],
    ['a plain file', { model: 'm', sealed: false }, {}, 'sealing_required', 'sealed'],
    [
      'a plain file of one who seals',
      { model: 'm', sealed: false },
      { uploads: 'plain', sealing: 'client' },
      'sealing_required',
      'sealed',
    ],
    ['days that are not allowed', { model: 'm', keep_days: 2 }, { keepDays: 1 }, 'field_invalid', 'keep_days'],
    [
      'days for a plain file, which is never kept',
      { model: 'm', sealed: false, keep_days: 2 },
      { uploads: 'plain', keepDays: 3 },
      'field_invalid',
      'keep_days',
    ],
    ['no scope', { model: 'm' }, { scope: 'transcribe' }, 'scope_missing', 'uploads'],
    ['a forbidden language', { model: 'm', language: 'de' }, { languages: ['en'] }, 'language_forbidden', 'de'],
  ])('with %s is refused', async (_, body, claims, code, text) => {
    const refusal = await readRefusal(await create(body, claims));
    expect([refusal.code, refusal.message.includes(text)]).toEqual([code, true]);
    expect(eu.requests).toEqual([]);
  });

  it('may be plain where the token says so', async () => {
    const model = unique();
    await startAgent(model);
    eu.withKey = false;
    const claims = { uploads: 'plain', keepDays: 3 };
    expect((await create({ model, sealed: false }, claims)).status).toBe(201);
    expect(eu.requests[0]?.body).toMatchObject({ sealed: false, keepDays: 0 });
    expect(await readRefusal(await create({ model }, claims))).toMatchObject({ code: 'uploads_closed' });
  });

  it('C11 may not unpack to more sound than the token allows in a day', async () => {
    const model = unique();
    await startAgent(model);
    expect((await create({ model }, { allowance: { audioSecondsPerDay: 60 } })).status).toBe(201);
    expect(eu.requests[0]?.body).toMatchObject({ most: { seconds: 60 } });
  });

  it('returns the functions’ refusals, and none of its own link to them', async () => {
    const model = unique();
    await startAgent(model);
    eu.refusal = { reason: 'uploads_waiting', params: { limit: 5 } };
    expect(await readRefusal(await create({ model }))).toEqual({
      status: 429,
      code: 'uploads_waiting',
      message: 'Too many uploads are open: 5 are allowed.',
    });
    eu.refusal = { reason: 'token_invalid' };
    expect(await readRefusal(await create({ model }))).toMatchObject({ status: 503, code: 'uploads_unavailable' });
    eu.refusal = undefined;
    for (const plain of [
      () => new Response('<html>', { status: 502 }),
      () => Response.json({ id: 'x' }, { status: 201 }),
      () => Promise.reject(new Error('gone')),
    ]) {
      eu.plain = plain;
      expect(await readRefusal(await create({ model }))).toMatchObject({ status: 503, code: 'uploads_unavailable' });
    }
  });
});

describe('C2 C11 an upload', () => {
  it('is shown, without what is not its owner’s business', async () => {
    const row = eu.row({
      status: 'refused',
      refusal: { reason: 'audio_too_long', params: { limit: 7 } },
      callback: 'https://hook.test/secret',
      dialect: 'deepgram',
      warnings: ['lossy'],
      seconds: 12.5,
      ended: 1_700_000_060_000,
    });
    const answer = await ask(`/v1/uploads/${row.id}`, { headers: await bearer() });
    expect(await answer.json()).toEqual({
      object: 'upload',
      id: row.id,
      status: 'refused',
      model: 'reference-en',
      zone: 'eu',
      sealed: true,
      formats: ['json'],
      created: '2023-11-14T22:13:20.000Z',
      updated: '2023-11-14T22:14:20.000Z',
      expires: '2023-11-15T22:13:20.000Z',
      ended: '2023-11-14T22:14:20.000Z',
      seconds: 12.5,
      pieces: { total: 1, done: 1 },
      warnings: ['lossy'],
      error: { code: 'audio_too_long', message: 'The recording is longer than 7 seconds.' },
      audio: 'deleted',
      transcript: 'held',
      callback: 'none',
      run: 1,
      seq: 5,
    });
  });

  it('T4 says what it waits for since when, and how often its callback was tried', async () => {
    const since = 1_700_000_000_000;
    const row = eu.row({ status: 'admitted', waiting: { for: 'pool', since }, notice: 'pending', noticeTries: 2 });
    const answer = await ask(`/v1/uploads/${row.id}`, { headers: await bearer() });
    const waiting = { for: 'pool', since: '2023-11-14T22:13:20.000Z' };
    expect(await answer.json()).toMatchObject({ waiting, callback: 'pending', callback_attempts: 2 });
  });

  it('is looked for in every zone of the token and in no other', async () => {
    const row = us.row();
    expect((await ask(`/v1/uploads/${row.id}`, { headers: await bearer() })).status).toBe(200);
    const elsewhereOnly = await bearer({ zones: ['eu'] });
    expect(await readRefusal(await ask(`/v1/uploads/${row.id}`, { headers: elsewhereOnly }))).toMatchObject({
      status: 404,
      code: 'upload_unknown',
    });
    // While a zone is unreachable, the upload may exist there.
    us.plain = () => new Response('', { status: 500 });
    expect(await readRefusal(await ask(`/v1/uploads/${row.id}`, { headers: await bearer() }))).toMatchObject({
      status: 503,
      code: 'uploads_unavailable',
    });
  });

  it('another tenant’s and a malformed id are unknown', async () => {
    const row = eu.row({ tenant: 'other' });
    for (const id of [row.id, 'x', '..%2Fother', row.id.toUpperCase()])
      expect(await readRefusal(await ask(`/v1/uploads/${id}`, { headers: await bearer() }))).toMatchObject({
        status: 404,
        code: 'upload_unknown',
      });
    expect(eu.requests.every(({ line }) => line.startsWith(`GET /api/uploads/acme/${row.id}`))).toBe(true);
  });

  it('is cancelled and run again, both on record', async () => {
    const tenant = `t-${unique()}`;
    const row = eu.row({ tenant });
    const headers = await bearer({ tenant, audit: 'strict' });
    const cancelled = await ask(`/v1/uploads/${row.id}`, { method: 'DELETE', headers });
    expect(await cancelled.json()).toMatchObject({ id: row.id, status: 'cancelled' });
    const again = await ask(`/v1/uploads/${row.id}/rerun`, { method: 'POST', headers });
    expect(await again.json()).toMatchObject({ status: 'admitted', run: 2 });
    eu.refusal = { reason: 'upload_audio_gone' };
    const refused = await ask(`/v1/uploads/${row.id}/rerun`, { method: 'POST', headers });
    expect(await readRefusal(refused)).toMatchObject({ status: 409, code: 'upload_audio_gone' });
    expect((await events(tenant)).map(({ type, action, status }) => [type, action, status])).toEqual([
      ['inference.attempt', 'upload.delete', undefined],
      ['inference.complete', 'upload.delete', 200],
      ['inference.attempt', 'upload.rerun', undefined],
      ['inference.complete', 'upload.rerun', 200],
      ['inference.attempt', 'upload.rerun', undefined],
      ['inference.complete', 'upload.rerun', 409],
    ]);
  });

  it('can be followed: each change once, the newest after a reconnect, and an end', async () => {
    const row = eu.row({ status: 'working', seq: 3, pieces: 2, piecesDone: 1 });
    eu.news.push({ ...row, seq: 4, status: 'merging', piecesDone: 2 }, { ...row, seq: 6, status: 'done' });
    const headers = await bearer();
    const answer = await ask(`/v1/uploads/${row.id}/events`, { headers });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const frames = (await answer.text()).split('\n\n').filter((frame) => frame.includes('data:'));
    const seen = frames.map((frame) => frame.split('\n').slice(0, 2).join(' '));
    expect(seen).toEqual(['id: 3 event: change', 'id: 4 event: change', 'id: 6 event: end']);
    expect(JSON.parse(frames[2]?.split('data: ')[1] ?? '')).toMatchObject({ status: 'done', id: row.id });
    const back = await ask(`/v1/uploads/${row.id}/events`, { headers: { ...headers, 'last-event-id': '6' } });
    expect((await back.text()).startsWith('id: 6\nevent: end')).toBe(true);
    expect((await ask('/v1/uploads/x/events', { headers })).status).toBe(404);
  });

  it('C11 has bounded followers per tenant; a leaver frees its slot', async () => {
    const row = eu.row({ status: 'working', seq: 3, tenant: `t-${unique()}` });
    const headers = await bearer({ tenant: row.tenant });
    const follow = () => ask(`/v1/uploads/${row.id}/events`, { headers });
    const open: Response[] = [];
    while (open.length < UPLOAD_FOLLOWERS_MAX) open.push(await follow());
    expect(open.map(({ status }) => status)).toEqual(open.map(() => 200));
    const refused = await follow();
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await readRefusal(refused)).toMatchObject({ status: 429, code: 'allowance_concurrent' });
    await open[0]?.body?.cancel();
    open[0] = await follow();
    expect(open[0].status).toBe(200);
    for (const one of open) await one.body?.cancel();
  });

  it('C11 asks nothing any more once its follower is gone', async () => {
    const aborted = Promise.withResolvers<void>();
    const answer = await follow(new Request('https://edge.test/'), {
      tenant: `t-${unique()}`,
      now: Date.now,
      look: (_, waitSeconds, signal) => {
        if (waitSeconds === 0) return Promise.resolve(ok({ value: { seq: 1 } }));
        signal.addEventListener('abort', () => aborted.resolve());
        return new Promise(() => {});
      },
      isOver: () => false,
      show: (row) => row,
    });
    const reader = answer.body?.getReader();
    await reader?.read();
    void reader?.read();
    await reader?.cancel();
    await aborted.promise;
  });
});

describe('C2 C11 A21 the transcript of an upload', () => {
  async function done(zone: 'eu' | 'us' = 'eu') {
    const model = unique();
    const agent = await startAgent(model, { zone });
    const sent: number[] = [];
    agent.script = async function* (received) {
      sent.push((await received.all()).length);
      yield segment(0, 'hello there');
      yield segment(1, 'general kenobi');
      yield final(2);
    };
    const row = (zone === 'eu' ? eu : us).row({ model, run: 2 });
    return { agent, row, sent, at: (format = '') => `/v1/uploads/${row.id}/transcript${format}` };
  }

  it('is opened by an agent of its zone, and comes in every format', async () => {
    const { agent, row, sent, at } = await done('us');
    const headers = await bearer();
    const json = await ask(at(), { headers });
    expect(await json.json()).toMatchObject({
      text: 'hello there general kenobi',
      segments: [{ text: 'hello there' }, { text: 'general kenobi' }],
      words: [{ word: 'hello' }, {}, {}, {}],
    });
    expect(json.headers.get('cache-control')).toContain('no-store');
    expect(await (await ask(at('?format=text'), { headers })).text()).toBe('hello there general kenobi\n');
    expect(await (await ask(at('?format=srt'), { headers })).text()).toContain('1\n00:00:00,000 -->');
    expect(await (await ask(at('?format=vtt'), { headers })).text()).toMatch(/^WEBVTT\n\n00:00:00\.000/);
    expect(agent.seen[0]?.head).toMatchObject({
      v: 1,
      task: 'outcome',
      upload: row.id,
      run: 2,
      read: { etag: '"1"' },
    });
    expect(agent.seen[0]?.ticket).toMatchObject({ tenant: 'acme', model: row.model });
    expect(sent).toEqual([0, 0, 0, 0]);
  });

  it('stays in its zone, even when only another zone has an agent', async () => {
    const { row, at, agent } = await done('eu');
    eu.row({ ...row, zone: 'us' });
    expect(await readRefusal(await ask(at(), { headers: await bearer() }))).toMatchObject({ status: 503 });
    expect(await readRefusal(await ask(at(), { headers: await bearer({ zones: ['eu'] }) }))).toMatchObject({
      code: 'residency_mismatch',
    });
    expect(agent.requests).toBe(0);
  });

  it('is read through any agent of the zone when its model has gone', async () => {
    const { row, at, agent } = await done('eu');
    eu.row({ ...row, model: 'gone' });
    const answer = await ask(at('?format=text'), { headers: await bearer() });
    // Rosters outlive tests: some agent of the zone is asked, and only ours answers.
    if (answer.status === 200) expect(agent.requests).toBe(1);
    else expect((await readRefusal(answer)).code).toMatch(/pool_lost|no_pool|attestation_invalid/);
  });

  it('is on record without being counted as new audio', async () => {
    const { row, at } = await done('eu');
    const tenant = `t-${unique()}`;
    eu.row({ ...row, tenant });
    const headers = await bearer({ tenant, audit: 'strict' });
    expect((await ask(at(), { headers })).status).toBe(200);
    const said = await events(tenant);
    expect(said.map(({ type, action }) => [type, action])).toEqual([
      ['inference.attempt', 'upload.transcript'],
      ['keys', 'setup'],
      ['route', undefined],
      ['inference.complete', 'upload.transcript'],
    ]);
    expect(said.at(-1)).toMatchObject({ status: 200, audioSeconds: 0, model: row.model });
    expect(JSON.stringify(said)).not.toContain('kenobi');
    expect(JSON.stringify(said)).not.toContain('sig=secret');
  });

  it('a missing one or an unknown format is refused', async () => {
    const { at, agent } = await done('eu');
    const headers = await bearer();
    expect(await readRefusal(await ask(at('?format=doc'), { headers }))).toMatchObject({ code: 'field_invalid' });
    eu.refusal = { reason: 'upload_status_wrong', params: { status: 'working' } };
    expect(await readRefusal(await ask(at(), { headers }))).toMatchObject({
      status: 409,
      message: 'This is not possible with an upload that is working.',
    });
    eu.refusal = undefined;
    agent.script = async function* () {
      yield { type: 'refusal', reason: 'transcript_gone' };
    };
    expect(await readRefusal(await ask(at(), { headers }))).toMatchObject({ code: 'transcript_gone' });
    const restricted = await bearer({ languages: ['de'] });
    expect((await ask(at(), { headers: restricted })).status).toBe(403);
  });
});

describe('C11 dead-lettered jobs', () => {
  const replay = async (claims = {}, query = '') =>
    ask(`/v1/jobs/replay${query}`, { method: 'POST', headers: await bearer(claims) });

  it('are put back by an operator, in every zone or in one', async () => {
    expect(await (await replay()).json()).toEqual({
      zones: [
        { zone: 'eu', replayed: 2, rerun: 1, dropped: 0 },
        { zone: 'us', replayed: 2, rerun: 1, dropped: 0 },
      ],
    });
    expect(await (await replay({}, '?zone=us')).json()).toMatchObject({ zones: [{ zone: 'us' }] });
    expect(us.requests.map(({ line, claims }) => [line, claims.operate])).toEqual([
      ['POST /api/jobs/replay', true],
      ['POST /api/jobs/replay?zone=us', true],
    ]);
    expect(await readRefusal(await replay({}, '?zone=mars'))).toMatchObject({ code: 'zone_unserved' });
  });

  it('are nothing for tenants', async () => {
    expect(await readRefusal(await replay({ scope: 'uploads' }))).toMatchObject({ code: 'scope_missing' });
    const row = eu.row();
    await ask(`/v1/uploads/${row.id}`, { headers: await bearer() });
    expect(eu.requests.map(({ claims }) => claims.operate)).toEqual([undefined]);
  });
});
