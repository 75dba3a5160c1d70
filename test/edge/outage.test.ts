// Functions that do not answer, as callers of the edge meet them: retries with a key, and the circuit breaker.
import { beforeEach, describe, expect, it } from 'vitest';
import { FUNCTIONS_CALL_MS } from '../../edge/functions/call-functions.ts';
import { CIRCUIT_FIRST_MS } from '../../edge/functions/circuit-breaker.ts';
import { generateZoneKey } from '../../shared/seal/zone-key.ts';
import { FakeFunctions } from '../fake/functions.ts';
import { ask, elsewhere, passTime, readRefusal, silent, startAgent } from '../fake/network.ts';
import { makeToken } from './authority.ts';

const HOST = 'functions-eu.test';
const gone = () => Promise.reject(new TypeError('Network connection lost.'));

let eu: FakeFunctions;
let model: string;
let key: string;
beforeEach(() => {
  key = crypto.randomUUID();
  eu = new FakeFunctions('eu');
  model = `model-${crypto.randomUUID().slice(0, 8)}`;
});

/** Starts the agent within the test: its socket belongs to the request that opened it. */
const startPool = () => startAgent(model, { zone: 'eu' });

interface Created {
  readonly key?: string | undefined;
  readonly claims?: Record<string, unknown>;
  readonly more?: Record<string, unknown>;
}

async function create({ key: sent, claims = {}, more = {} }: Created = {}): Promise<Response> {
  const authorization = `Bearer ${await makeToken(claims)}`;
  const headers = { authorization, ...(sent !== undefined && { 'idempotency-key': sent }) };
  return ask('/v1/uploads', { method: 'POST', headers, body: JSON.stringify({ model, ...more }) });
}

const idOf = async (answer: Response) => ((await answer.json()) as { id: string }).id;
const refused = async (answer: Response) => {
  const retryAfter = answer.headers.get('retry-after');
  return { ...(await readRefusal(answer)), retryAfter };
};

describe('T4 A8 Idempotency-Key on POST /v1/uploads', () => {
  it('gets the first upload for the same request, and 422 for another', async () => {
    await startPool();
    const first = await idOf(await create({ key }));
    expect(await idOf(await create({ key }))).toBe(first);
    // A structured-field string and the same bare word are one key.
    expect(await idOf(await create({ key: `"${key}"` }))).toBe(first);
    expect(await refused(await create({ key, more: { language: 'en' } }))).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    });
    expect(eu.requests).toHaveLength(3);
    expect(new Set(eu.requests.map(({ body }) => (body as { id: string }).id))).toEqual(new Set([first]));
  });

  it('joins neither two subjects nor two tenants, and no request without a key', async () => {
    await startPool();
    const claims = [{}, { sub: 'bob' }, { tenant: 'umbrella' }];
    const ids: string[] = [];
    for (const one of claims) ids.push(await idOf(await create({ key, claims: one })));
    ids.push(await idOf(await create()));
    expect(new Set(ids).size, ids.join()).toBe(4);
  });

  it('refuses a retry with 409 while the first request runs', async () => {
    await startPool();
    let second: Awaited<ReturnType<typeof refused>> | undefined;
    eu.plain = async () => {
      second = await refused(await create({ key }));
      return Response.json({ error: { reason: 'uploads_waiting', params: { limit: 1 } } }, { status: 429 });
    };
    expect((await create({ key })).status).toBe(429);
    expect(second).toMatchObject({ status: 409, code: 'idempotency_key_running' });
    expect(second?.retryAfter).toMatch(/^[12]$/);
    // Nothing of the refused request is left, not even its key.
    eu.plain = undefined;
    expect((await create({ key, more: { language: 'en' } })).status).toBe(201);
  });

  it('finds the upload of an unanswered request; its refusal names it', async () => {
    await startPool();
    eu.plain = gone;
    const { status, message } = await refused(await create({ key }));
    expect(status).toBe(503);
    eu.plain = undefined;
    const id = await idOf(await create({ key }));
    expect(message).toContain(`whether ${id} was made is not known`);
    // Functions drop a call before the edge gives up.
    const [call] = eu.requests;
    expect(Number(call?.deadline)).toBeLessThan(Date.now() + FUNCTIONS_CALL_MS);
  });

  it.each(['', 'two words', 'x'.repeat(256)])('refuses the malformed key %j', async (malformed) => {
    await startPool();
    expect(await refused(await create({ key: malformed }))).toMatchObject({ status: 400, code: 'field_invalid' });
  });
});

describe('T4 A8 Idempotency-Key on a recording that becomes an upload', () => {
  const post = async (path: string, file: string, type: string) => {
    const form = new FormData();
    form.append('model', model);
    form.append('file', new Blob([file]), 'speech.wav');
    const headers = {
      authorization: `Bearer ${await makeToken()}`,
      'idempotency-key': key,
      'x-auricle-upload': 'true',
      ...(type === 'recording' && { 'content-type': 'audio/wav' }),
    };
    return ask(path, { method: 'POST', headers, body: type === 'recording' ? file : form });
  };

  it.each(['form', 'recording'])('stores one file for a %s that is sent twice', async (type) => {
    await startPool();
    eu.key = (await generateZoneKey()).zoneKey;
    let puts = 0;
    elsewhere.set('storage.test', async () => {
      puts += 1;
      return new Response('', { status: 201 });
    });
    const callback = encodeURIComponent('https://hook.test/x');
    const path = type === 'form' ? '/v1/audio/transcriptions' : `/v1/listen?model=${model}&callback=${callback}`;
    const answers = [await post(path, 'one', type), await post(path, 'one', type)];
    const bodies = (await Promise.all(answers.map((one) => one.json()))) as { id?: string; request_id?: string }[];
    const [first, second] = bodies.map(({ id, request_id }) => id ?? request_id);
    expect(first).toBeDefined();
    expect(second).toBe(first);
    // One block and the list of blocks.
    expect(puts).toBe(2);
    const other = await post(path, 'two', type);
    expect([other.status, await other.text()]).toEqual([422, expect.stringContaining('idempotency_key_reused')]);
  });
});

describe('T4 A8 Idempotency-Key on a recording with a broken retry', () => {
  const post = async () => {
    const headers = {
      authorization: `Bearer ${await makeToken()}`,
      'idempotency-key': key,
      'content-type': 'audio/wav',
    };
    const callback = encodeURIComponent('https://hook.test/x');
    return ask(`/v1/listen?model=${model}&callback=${callback}`, { method: 'POST', headers, body: 'sound' });
  };
  const deleted = () => eu.requests.filter(({ line }) => line.startsWith('DELETE')).length;
  const made = () =>
    eu.requests.filter(({ line }) => line.startsWith('POST')).map(({ body }) => (body as { id: string }).id);

  it('keeps an upload if its first request may have stored the file', async () => {
    await startPool();
    eu.key = (await generateZoneKey()).zoneKey;
    let status = 403;
    const blocks: string[] = [];
    elsewhere.set('storage.test', async ({ url }) => {
      const block = new URL(url).searchParams.get('blockid');
      if (block) blocks.push(block);
      return new Response('', { status });
    });
    expect((await post()).status).toBe(503);
    status = 201;
    // The file is larger than the grant: the retry breaks after its grant.
    eu.maxBytes = 1;
    expect((await post()).status).toBe(413);
    eu.maxBytes = 1_000;
    const third = (await (await post()).json()) as { request_id: string };
    expect(deleted()).toBe(0);
    expect(new Set(made())).toEqual(new Set([third.request_id]));
    // A late block of the first request replaces none of the third.
    expect([blocks.length, new Set(blocks).size]).toEqual([2, 2]);
  });

  it('deletes an upload that no retry gets, and makes another', async () => {
    await startPool();
    elsewhere.set('storage.test', async () => new Response('', { status: 201 }));
    eu.maxBytes = 1;
    expect((await post()).status).toBe(413);
    await expect.poll(deleted).toBe(1);
    eu.maxBytes = 1_000;
    expect((await post()).status).toBe(200);
    expect(new Set(made()).size).toBe(2);
  });
});

describe('C9 T4 the circuit breaker of functions', () => {
  it('refuses without a call after a failed probe, and one probe closes it', async () => {
    await startPool();
    eu.plain = gone;
    silent.add(HOST);
    expect(await refused(await create())).toMatchObject({ status: 503, retryAfter: '1' });
    const calls = eu.requests.length;
    const others = await Promise.all([create({ claims: { tenant: 'umbrella' } }), create(), create()]);
    for (const answer of others) {
      const refusal = await refused(answer);
      expect(refusal).toMatchObject({ status: 503, code: 'uploads_unavailable', retryAfter: '1' });
      // Nothing was sent, so nothing can have happened.
      expect(refusal.message).not.toContain('not known');
    }
    expect(eu.requests).toHaveLength(calls);
    passTime(CIRCUIT_FIRST_MS);
    expect((await refused(await create())).retryAfter).toBe('2');
    eu.plain = undefined;
    silent.clear();
    passTime(2 * CIRCUIT_FIRST_MS);
    expect((await create()).status).toBe(201);
  });

  it('stays closed while functions answer a probe, whatever becomes of one call', async () => {
    await startPool();
    for (const plain of [gone, () => Response.json({ error: { reason: 'storage_unavailable' } }, { status: 503 })]) {
      eu.plain = plain;
      expect((await create()).status).toBe(503);
      eu.plain = undefined;
      expect((await create({ claims: { tenant: 'umbrella' } })).status).toBe(201);
    }
  });

  it('opens when storage behind living functions does not answer', async () => {
    await startPool();
    eu.plain = () => Response.json({ error: { reason: 'storage_unavailable' } }, { status: 503 });
    silent.add(HOST);
    expect(await refused(await create())).toMatchObject({ code: 'storage_unavailable', retryAfter: '1' });
    const calls = eu.requests.length;
    expect((await create()).status).toBe(503);
    expect(eu.requests).toHaveLength(calls);
    silent.clear();
    eu.plain = undefined;
    passTime(CIRCUIT_FIRST_MS);
    expect((await create()).status).toBe(201);
  });
});
