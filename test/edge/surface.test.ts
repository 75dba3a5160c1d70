import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { errorBody } from '../../edge/http/error-body.ts';
import { outboxPage } from '../../edge/ledger/outbox.ts';
import { listedModel } from '../../edge/registry/list-models.ts';
import { listedPool } from '../../edge/routing/list-pools.ts';
import { SNAPSHOT_AGE_MS } from '../../edge/routing/snapshot.ts';
import { HEARTBEAT_UNKNOWN_MS } from '../../shared/pool/limits.ts';
import { refusals } from '../../shared/refusal.ts';
import { transcription, verboseTranscription } from '../../shared/speech/openai-answer.ts';
import { ask, clearNetwork, passTime, readRefusal, startAgent, upload } from '../fake/network.ts';
import { makeToken } from './authority.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const bearer = async (claims = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });

describe('C10 the models', () => {
  it('are listed as the official clients read them, with what choosing needs', async () => {
    const name = unique();
    await startAgent(name, { zone: 'eu', languages: ['en', 'en-GB'] });
    await startAgent(name, { zone: 'us', pool: 'eks-test', languages: ['en'] });
    const answer = await ask('/v1/models', { headers: await bearer() });
    const list = (await answer.json()) as { object: string; data: { id: string }[] };
    expect(list.object).toBe('list');
    expect(list.data.find(({ id }) => id === name)).toEqual({
      id: name,
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'auricle',
      task: 'transcribe',
      languages: ['en', 'en-GB'],
      zones: ['eu', 'us'],
      pools: ['aks-test', 'eks-test'],
    });
  });

  it('U4: are promised to hear people only where every agent of theirs does', async () => {
    const [both, one] = [unique(), unique()];
    await startAgent(both, { zone: 'eu', hears: 'people' });
    await startAgent(both, { zone: 'us', hears: 'people' });
    await startAgent(one, { zone: 'eu', hears: 'people' });
    await startAgent(one, { zone: 'us', hears: 'synthetic' });
    const shown = async (name: string) =>
      (await ask(`/v1/models/${name}`, { headers: await bearer() })).json() as Promise<{ hears?: string }>;
    expect([(await shown(both)).hears, (await shown(one)).hears]).toEqual(['people', 'synthetic']);
  });

  it('show only zones of the token', async () => {
    const name = unique();
    await startAgent(name, { zone: 'us' });
    const answer = await ask(`/v1/models/${name}`, { headers: await bearer({ zones: ['eu'] }) });
    expect(await readRefusal(answer)).toMatchObject({ status: 404, code: 'model_unknown' });
    expect((await ask(`/v1/models/${name}`, { headers: await bearer() })).status).toBe(200);
  });

  it('need the scope', async () => {
    const answer = await ask('/v1/models', { headers: await bearer({ scope: 'transcribe' }) });
    expect(await readRefusal(answer)).toMatchObject({ status: 403, code: 'scope_missing' });
  });
});

describe('C5 operators', () => {
  it('see the agents without keys', async () => {
    const name = unique();
    const agent = await startAgent(name);
    const text = await (await ask('/v1/pools', { headers: await bearer() })).text();
    expect(text).toContain(agent.name);
    expect(text).toContain('"health":"ready"');
    expect(text).not.toContain(agent.attestation);
    expect(text).not.toContain('attestation');
  });

  it('C4 a tenant reads its own outbox, and no other, with the scope audit', async () => {
    const tenant = `t-${unique()}`;
    // Its record is where it lives.
    const headers = await bearer({ tenant, scope: 'audit', zones: ['us'] });
    await ask('/v1/models', { headers });
    const own = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers });
    // The read itself is on record before it is answered.
    expect(await own.json()).toMatchObject({
      rows: [{ event: { type: 'inference.denied', tenant } }, { event: { type: 'access.audit', tenant } }],
    });
    for (const query of ['?tenant=acme', '?tenant=@anonymous', '?zone=eu', '', `?tenant=${tenant}x`]) {
      const refusal = await readRefusal(await ask(`/v1/audit/outbox${query}`, { headers }));
      expect(refusal).toEqual({ status: 403, code: 'scope_missing', message: 'The token lacks the scope "operate".' });
    }
    const neither = await bearer({ tenant, scope: 'models transcribe' });
    const refusal = await readRefusal(await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers: neither }));
    expect(refusal).toMatchObject({ status: 403, message: 'The token lacks the scope "audit".' });
  });

  it('A21 C9 a reader of another’s outbox is recorded at home, with its owner', async () => {
    const [operators, other, sub] = [`ops-${unique()}`, `never-${unique()}`, `holder-${unique()}`];
    const headers = await bearer({ tenant: operators, sub });
    for (const query of [`tenant=${other}`, 'zone=eu'])
      await (await ask(`/v1/audit/outbox?${query}`, { headers })).text();
    const read = await (await ask(`/v1/audit/outbox?tenant=${operators}`, { headers: await bearer() })).text();
    const { rows } = JSON.parse(read) as { rows: { event: Record<string, unknown> }[] };
    const told = {
      type: 'access.audit',
      tenant: operators,
      action: 'outbox',
      count: 1,
      subject: expect.stringMatching(/^c1:/),
    };
    expect(rows.map(({ event }) => event)).toMatchObject([
      { ...told, query: `tenant ${other}` },
      { ...told, query: 'roster', zone: 'eu' },
    ]);
    expect(read).not.toContain(sub);
  });

  it.each(['Acme', 'a b', '', '@anonymous/x', '../eu', 'x'.repeat(64)])('no outbox is made for %j', async (tenant) => {
    const path = `/v1/audit/outbox?tenant=${encodeURIComponent(tenant)}`;
    expect(await readRefusal(await ask(path, { headers: await bearer() }))).toEqual({
      status: 400,
      code: 'field_invalid',
      message: 'The field "tenant" is not valid: must be the name of a tenant.',
    });
  });

  it.each(['/v1/pools', '/v1/audit/outbox?tenant=another'])('%s needs the scope operate', async (path) => {
    const answer = await ask(path, { headers: await bearer({ scope: 'transcribe models audit' }) });
    expect(await readRefusal(answer)).toMatchObject({ status: 403, code: 'scope_missing' });
  });

  it.each([
    ['/v1/audit/outbox', 'field_missing', 'The field "tenant" is missing.'],
    ['/v1/audit/outbox?tenant=t&after=-1', 'field_invalid', 'The field "after" is not valid: must be a whole number.'],
    [
      '/v1/audit/outbox?tenant=t&limit=0',
      'field_invalid',
      'The field "limit" is not valid: must be a whole number of at least 1.',
    ],
    [
      '/v1/audit/outbox?tenant=t&limit=x',
      'field_invalid',
      'The field "limit" is not valid: must be a whole number of at least 1.',
    ],
    ['/v1/audit/outbox?tenant=t&after=', 'field_invalid', 'The field "after" is not valid: must be a whole number.'],
  ])('%s is %s', async (path, code, message) => {
    expect(await readRefusal(await ask(path, { headers: await bearer() }))).toEqual({ status: 400, code, message });
  });

  it.each(['/v1/audit/outbox?tenant=t&zone=mars', '/v1/audit/health?zone=mars'])(
    '%s is zone_unserved',
    async (path) => {
      expect(await readRefusal(await ask(path, { headers: await bearer() }))).toEqual({
        status: 403,
        code: 'zone_unserved',
        message: 'The zone "mars" is not served here.',
      });
    },
  );

  it('an agent of an unserved zone is refused and recorded', async () => {
    passTime(2_000);
    const token = await makeToken({ tenant: undefined, scope: 'pool', pool: 'aks-mars', zone: 'mars' });
    const answer = await ask('/v1/pools/heartbeat', { headers: { authorization: `Bearer ${token}` } });
    expect(await readRefusal(answer)).toEqual({
      status: 403,
      code: 'zone_unserved',
      message: 'The zone "mars" is not served here.',
    });
    const record = await ask('/v1/audit/outbox?tenant=@anonymous', { headers: await bearer() });
    expect(await record.text()).toContain('"reason":"zone_unserved","detail":"pool aks-mars, zone mars"');
  });

  it('page through an outbox', async () => {
    const tenant = `t-${unique()}`;
    for (let n = 0; n < 3; n += 1) await ask('/v1/models', { headers: await bearer({ tenant, scope: 'x' }) });
    const read = async (query: string) =>
      (await (await ask(`/v1/audit/outbox?tenant=${tenant}&${query}`, { headers: await bearer() })).json()) as {
        rows: { pseq: number }[];
        next?: number;
      };
    const first = await read('limit=2');
    expect(first.rows.map(({ pseq }) => pseq)).toEqual([1, 2]);
    expect((await read(`limit=2&after=${first.next}`)).rows.map(({ pseq }) => pseq)).toEqual([3]);
  });

  it('see the rosters record that an agent was attested', async () => {
    const agent = await startAgent(unique());
    const answer = await ask('/v1/audit/outbox?zone=eu', { headers: await bearer() });
    expect(await answer.text()).toContain(`"agent":"${agent.name}","action":"attested"`);
  });
});

describe('C10 browsers', () => {
  const preflight = (path: string, method: string, headers: string) =>
    ask(path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.test',
        'access-control-request-method': method,
        'access-control-request-headers': headers,
      },
    });
  const stainless = ['arch', 'lang', 'os', 'package-version', 'retry-count', 'runtime', 'runtime-version', 'timeout'];

  it('get leave for every header of the official clients', async () => {
    const asked = ['authorization', 'content-type', ...stainless.map((name) => `x-stainless-${name}`)].join(',');
    const answer = await preflight('/v1/audio/transcriptions', 'POST', asked);
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST');
    const allowed = answer.headers.get('access-control-allow-headers')?.split(', ');
    for (const name of asked.split(',')) expect(allowed).toContain(name);
  });

  it('get leave for a header that a later client adds, and for no other', async () => {
    const answer = await preflight('/v1/models', 'GET', 'x-stainless-poll-helper, x-evil');
    const allowed = answer.headers.get('access-control-allow-headers');
    expect(allowed).toContain('x-stainless-poll-helper');
    expect(allowed).not.toContain('x-evil');
  });

  it.each([
    ['GET', '/v1/models'],
    ['POST', '/v1/audio/transcriptions'],
    ['PATCH', '/v1/models'],
    ['GET', '/nowhere'],
    ['GET', '/v2/nowhere'],
  ])('%s %s carries CORS headers and the request id', async (method, path) => {
    const { headers } = await ask(path, { method });
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('may read the headers that matter, also of a refusal', async () => {
    const answer = await ask('/v1/models', { headers: { origin: 'https://app.test' } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    const exposed = answer.headers.get('access-control-expose-headers')?.split(', ');
    const limits = ['limit', 'remaining', 'reset'].flatMap((what) =>
      ['requests', 'audio-seconds'].map((kind) => `x-ratelimit-${what}-${kind}`),
    );
    for (const name of ['x-request-id', 'retry-after', 'retry-after-ms', 'x-should-retry', ...limits])
      expect(exposed).toContain(name);
  });
});

describe('C10 addresses of WebSockets', () => {
  it.each(['/v1/stream', '/v1/realtime', '/v1/listen?model=m'])('C10 %s without a token is 401', async (path) => {
    expect((await ask(path)).status).toBe(401);
    expect((await ask(path, { headers: await bearer() })).status).toBe(426);
  });
});

describe('C10 the description of the interface', () => {
  it('U11 names the headers of the allowance where requests are counted, and nowhere else', async () => {
    type Answers = Record<string, { headers?: Record<string, { $ref: string }> }>;
    const api = (await (await ask('/v1/openapi.json')).json()) as {
      paths: Record<string, Record<string, { responses: Answers }>>;
      components: { headers: Record<string, unknown> };
    };
    const refOf = (path: string, method: string, status: string) =>
      api.paths[path]?.[method]?.responses[status]?.headers?.['x-ratelimit-remaining-audio-seconds']?.$ref;
    const name = 'XRatelimitRemainingAudioSeconds';
    expect(api.components.headers).toHaveProperty(name);
    for (const [path, method, status] of [
      ['/v1/audio/transcriptions', 'post', '200'],
      ['/v1/audio/transcriptions', 'post', '429'],
      ['/v1/listen', 'post', '200'],
      ['/v1/listen', 'get', '101'],
      ['/v1/uploads', 'post', '201'],
      ['/v1/projects', 'post', '201'],
    ] as const) {
      expect(refOf(path, method, status)).toBe(`#/components/headers/${name}`);
    }
    expect(refOf('/v1/models', 'get', '200')).toBeUndefined();
  });

  /** The schema itself, made to refuse members it does not name. */
  const strictly = async (schema: z.ZodObject, answer: Response) => {
    expect(answer.ok || answer.status === 401).toBe(true);
    schema.strict().parse(await answer.json());
  };

  it('is true of what is answered', async () => {
    const name = unique();
    await startAgent(name);
    const headers = await bearer();
    await strictly(listedModel, await ask(`/v1/models/${name}`, { headers }));
    await strictly(outboxPage, await ask('/v1/audit/outbox?zone=eu&limit=1', { headers }));
    await strictly(errorBody, await ask('/v1/models'));
    const form = (format: string) =>
      upload({
        fields: [
          ['model', name],
          ['response_format', format],
          ['timestamp_granularities[]', 'word'],
          ['timestamp_granularities[]', 'segment'],
        ],
      });
    await strictly(transcription, await form('json'));
    await strictly(verboseTranscription, await form('verbose_json'));
    const pools = (await (await ask('/v1/pools', { headers })).json()) as { data: unknown[] };
    for (const pool of pools.data) listedPool.strict().parse(pool);
    expect(pools.data.length).toBeGreaterThan(0);
  });

  it('names every operation and every refusal', async () => {
    const answer = await ask('/v1/openapi.json');
    expect(answer.headers.get('content-type')).toBe('application/json');
    const text = await answer.text();
    const document = JSON.parse(text) as {
      openapi: string;
      paths: Record<string, Record<string, { operationId?: string }>>;
      components: { schemas: Record<string, unknown> };
    };
    expect(document.openapi).toBe('3.1.0');
    // Generators of clients name their methods by it.
    const names = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
    expect(names).not.toContain(undefined);
    expect(new Set(names).size).toBe(names.length);
    const form = document.components.schemas.TranscriptionRequest as {
      properties: Record<string, { format?: string }>;
      required: string[];
    };
    expect(form.properties.file).toMatchObject({ type: 'string', format: 'binary' });
    expect(Object.keys(form.properties)).toEqual(
      expect.arrayContaining([
        'model',
        'language',
        'prompt',
        'response_format',
        'temperature',
        'stream',
        'timestamp_granularities[]',
      ]),
    );
    for (const [, target] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = (target as string)
        .split('/')
        .reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], document);
      expect(found, target).toBeDefined();
    }
    const codes = (
      document.components.schemas.Error as { properties: { error: { properties: { code: { enum: string[] } } } } }
    ).properties.error.properties.code.enum;
    expect(codes.sort()).toEqual(Object.keys(refusals).sort());
  });

  it('C10 health says whether a model is served', async () => {
    const health = async () => (await ask('/healthz')).json();
    clearNetwork();
    passTime(HEARTBEAT_UNKNOWN_MS + SNAPSHOT_AGE_MS);
    expect(await health()).toEqual({ status: 'ok', serving: false });
    await startAgent(unique());
    expect(await health()).toEqual({ status: 'ok', serving: true });
  });
});

describe('U3 C10 clients of other services', () => {
  it.each(['/v1/audio/translations', '/v1/chat/completions'])('%s is 501 in OpenAI’s form', async (path) => {
    const answer = await ask(path, { method: 'POST', headers: await bearer(), body: '{}' });
    expect(await readRefusal(answer)).toMatchObject({ status: 501, code: 'route_unbuilt' });
  });

  it.each(['/v1/read', '/v1/agent/settings/think/models', '/v2/listen'])(
    '%s is 501 in Deepgram’s form',
    async (path) => {
      const answer = await ask(path, { method: 'POST', headers: await bearer(), body: '{}' });
      expect(answer.status).toBe(501);
      expect(await answer.json()).toMatchObject({ err_code: 'route_unbuilt', request_id: expect.any(String) });
    },
  );

  it('see their tenant as a Deepgram project, where Deepgram’s ask', async () => {
    const token = await makeToken({ tenant: 'acme' });
    const get = (path: string, headers: Record<string, string>) => ask(path, { headers });
    const named = { authorization: `Bearer ${token}`, 'x-fern-sdk-name': '@deepgram/sdk' };
    for (const headers of [named, { authorization: `Token ${token}` }]) {
      expect(await (await get('/v1/projects', headers)).json()).toEqual({
        projects: [{ project_id: 'acme', name: 'acme' }],
      });
    }
    expect(await (await get('/v1/projects/acme', named)).json()).toEqual({ project_id: 'acme', name: 'acme' });
    expect((await get('/v1/projects/acme/keys', named)).status).toBe(501);
    expect(await (await get('/v1/projects', { authorization: 'Token x.y.z' })).json()).toMatchObject({
      err_code: 'INVALID_AUTH',
    });
    expect(await (await get('/v1/projects/acme/keys', { authorization: `Bearer ${token}` })).json()).toMatchObject({
      error: { code: 'route_unknown' },
    });
  });
});
