import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { issueGrant } from '../../../edge/auth/grant.ts';
import { readClaims } from '../../../shared/tenant/claims.ts';
import { ask, passTime, readRefusal, startAgent, startDay, upload } from '../../fake/network.ts';
import { makeSettings } from '../../fake/settings.ts';
import { makeToken } from '../authority.ts';

const NOW_S = () => Math.floor(Date.now() / 1_000);
const post = async (path: string, body?: unknown, claims: Record<string, unknown> = {}, life = 10_000) =>
  ask(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${await makeToken(claims, life)}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
const strip = (secret: string) => secret.replace(/^ek_/, '');

describe('C10 POST /v1/auth/grant', () => {
  it('issues a 30 s token for live audio only', async () => {
    const answer = await post('/v1/auth/grant', undefined, {
      tenant: 'acme',
      languages: ['en'],
      zones: ['eu'],
      idleSeconds: 20,
      visibility: 'subject',
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { access_token, expires_in } = (await answer.json()) as { access_token: string; expires_in: number };
    expect(expires_in).toBe(30);
    expect(decodeJwt(access_token)).toMatchObject({
      tenant: 'acme',
      sub: 'alice',
      scope: 'stream',
      languages: ['en'],
      zones: ['eu'],
      idleSeconds: 20,
      visibility: 'subject',
      aud: 'auricle',
    });
    const models = await ask('/v1/models', { headers: { authorization: `Bearer ${access_token}` } });
    expect(models.status).toBe(403);
    const again = await ask('/v1/auth/grant', {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}` },
    });
    expect(again.status).toBe(403);
    expect(await again.json()).toMatchObject({ err_code: 'INSUFFICIENT_PERMISSIONS', reason: 'scope_missing' });
  });

  it('lives as long as requested, never longer than its source token', async () => {
    const asked = await post('/v1/auth/grant', { ttl_seconds: 120 });
    expect(await asked.json()).toMatchObject({ expires_in: 120 });
    const short = await post('/v1/auth/grant', { ttl_seconds: 3_600 }, {}, 100);
    const { expires_in } = (await short.json()) as { expires_in: number };
    expect(expires_in).toBeLessThanOrEqual(100);
  });

  it('expires', async () => {
    const { access_token } = (await (await post('/v1/auth/grant', { ttl_seconds: 1 })).json()) as {
      access_token: string;
    };
    passTime(2_000);
    const late = await ask('/v1/models', { headers: { authorization: `Bearer ${access_token}` } });
    expect(late.status).toBe(401);
    expect(await late.json()).toMatchObject({ error: { code: 'token_expired' } });
  });

  it.each([
    [{ ttl_seconds: 0 }, 'field_invalid'],
    [{ ttl_seconds: 3_601 }, 'field_invalid'],
    [{ ttl_seconds: 'soon' }, 'field_invalid'],
    ['[]', 'json_invalid'],
    ['{', 'json_invalid'],
  ])('refuses %j in the shape its clients read', async (body, reason) => {
    const answer = await post('/v1/auth/grant', body);
    expect(answer.status).toBe(400);
    expect(answer.headers.get('dg-request-id')).toBe(answer.headers.get('x-request-id'));
    expect(await answer.json()).toMatchObject({
      err_code: expect.any(String),
      err_msg: expect.any(String),
      request_id: answer.headers.get('x-request-id'),
      reason,
    });
  });

  it('takes Deepgram’s own scheme of authorization', async () => {
    const answer = await ask('/v1/auth/grant', {
      method: 'POST',
      headers: { authorization: `Token ${await makeToken()}` },
    });
    expect(answer.status).toBe(200);
  });

  it('C4 is in the record of a strict tenant before it leaves', async () => {
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const granted = await post('/v1/auth/grant', {}, { tenant, audit: 'strict' });
    expect(granted.status).toBe(200);
    const record = await ask(`/v1/audit/outbox?tenant=${tenant}`, {
      headers: { authorization: `Bearer ${await makeToken()}` },
    });
    const text = await record.text();
    expect(text).toContain('"type":"token.granted"');
    const { access_token } = (await granted.json()) as { access_token: string };
    expect(text).not.toContain(access_token.slice(-20));
  });

  it('is refused where no key is set', async () => {
    const settings = { ...makeSettings({}), grantKey: undefined };
    const claims = readClaims({ tenant: 't', scope: 'transcribe', zones: ['eu'], exp: NOW_S() + 60 });
    if (!claims.ok) throw new Error('claims');
    expect(await issueGrant(claims.value, { seconds: 30, scopes: ['stream'] }, settings, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'grant_closed' },
    });
  });
});

describe('C4 C10 a grant within the token it was made of', () => {
  const unique = () => crypto.randomUUID().slice(0, 8);
  const grantOf = async (body: object, claims: object = {}) => {
    const answer = await post('/v1/auth/grant', body, claims as Record<string, unknown>);
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { access_token: string }).access_token;
  };
  const transcribe = (token: string, model: string) => upload({ token, fields: [['model', model]] });

  it.each([
    ['stream', 403],
    ['transcribe', 200],
    ['stream transcribe', 200],
  ])('sends recordings where its request named the scope: %s', async (scope, status) => {
    const model = `model-${unique()}`;
    await startAgent(model);
    const token = await grantOf({ scope });
    expect(decodeJwt(token).scope).toBe(scope);
    expect((await transcribe(token, model)).status).toBe(status);
    const headers = { authorization: `Token ${token}` };
    const listen = await ask(`/v1/listen?model=${model}`, { method: 'POST', headers, body: new Uint8Array(2_000) });
    expect(listen.status).toBe(status);
  });

  it('makes no further ones, whatever its scope', async () => {
    const headers = { authorization: `Bearer ${await grantOf({ scope: 'transcribe' })}` };
    for (const path of ['/v1/auth/grant', '/v1/realtime/client_secrets']) {
      const again = await ask(path, { method: 'POST', headers });
      expect([again.status, await again.text()]).toEqual([403, expect.stringContaining('grant_repeated')]);
    }
  });

  it.each<[object, string, object]>([
    [{ scope: 'operate' }, 'scope', {}],
    [{ scope: 'stream uploads' }, 'scope', {}],
    [{ scope: '' }, 'scope', {}],
    [{ sub: '' }, 'sub', {}],
    [{ sub: 'bob' }, 'sub', { visibility: 'subject' }],
    [{ allowance: { requests_per_minute: 0 } }, 'allowance.requests_per_minute', {}],
    [{ allowance: { uploads_at_once: 1 } }, 'allowance.uploads_at_once', {}],
    [{ zones: ['eu'] }, 'zones', {}],
    [{ languages: ['en'], ttl_seconds: 60 }, 'languages', {}],
    [{ ttl: 5 }, 'ttl', {}],
    [
      { allowance: { requests_per_minute: 8 } },
      'allowance.requests_per_minute',
      { allowance: { requestsPerMinute: 7 } },
    ],
    [{ allowance: { audio_seconds_per_day: 1e9 } }, 'allowance.audio_seconds_per_day', {}],
  ])('refuses %j for its field', async (body, field, claims) => {
    const answer = await post('/v1/auth/grant', body, claims as Record<string, unknown>);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ err_msg: expect.stringContaining(`"${field}"`) });
    const secret = await post('/v1/realtime/client_secrets', body, claims as Record<string, unknown>);
    expect(await secret.json()).toMatchObject({ error: { code: 'field_invalid', param: field } });
  });

  it('carries all other claims, except those that a device cannot use', async () => {
    const claims = {
      ...{ priority: 'interactive', sealing: 'client', audit: 'strict', mirror: 'forbidden', visibility: 'subject' },
      ...{ languages: ['en'], zones: ['us'], sessionSeconds: 60, uploads: 'plain', keepDays: 7 },
    };
    const { uploads: _, keepDays: __, ...kept } = claims;
    const made = decodeJwt(await grantOf({ scope: 'transcribe' }, claims));
    expect(made).toMatchObject({ ...kept, sub: 'alice', iss: 'urn:auricle:grant' });
    for (const name of ['uploads', 'keepDays', 'share']) expect(made).not.toHaveProperty(name);
  });

  it('acts for a subject of its own, and the record knows both as commitments', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const token = await grantOf({ scope: 'transcribe', sub: 'phone-7' }, { tenant, audit: 'strict' });
    expect(decodeJwt(token).sub).toBe('phone-7');
    expect((await transcribe(token, model)).status).toBe(200);
    const headers = { authorization: `Bearer ${await makeToken()}` };
    const text = await (await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers })).text();
    expect(text).not.toMatch(/phone-7|"alice"/);
    const { rows } = JSON.parse(text) as { rows: { event: Record<string, unknown> }[] };
    const [granted, attempt] = ['token.granted', 'inference.attempt'].map(
      (type) => rows.find(({ event }) => event.type === type)?.event,
    );
    expect(granted).toMatchObject({ scope: 'transcribe', grantee: expect.stringMatching(/^c1:[0-9a-f]{64}$/) });
    expect(attempt?.subject).toBe(granted?.grantee);
    expect(granted?.subject).not.toBe(granted?.grantee);
  });

  it.each(['strict', 'buffered'])('has a smaller allowance of its own, counted apart: %s', async (audit) => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const claims = { tenant, audit, allowance: { requestsPerMinute: 6, requestsAtOnce: 4 } };
    const parent = await makeToken(claims);
    // The usage of the tenant before the grant is not the grant's.
    for (let n = 0; n < 3; n += 1) expect((await transcribe(parent, model)).status).toBe(200);
    const body = { scope: 'transcribe', allowance: { requests_per_minute: 1 } };
    const [one, other] = [await grantOf(body, claims), await grantOf(body, claims)];
    expect((await transcribe(one, model)).headers.get('x-ratelimit-limit-requests')).toBe('1');
    const refused = await transcribe(one, model);
    expect(await readRefusal(refused)).toMatchObject({
      code: 'allowance_requests',
      message: 'Too many requests in this minute: 1 are allowed.',
    });
    expect((await transcribe(other, model)).status).toBe(200);
    // All of them count for the tenant: 3 of its own and 2 of grants.
    expect((await transcribe(parent, model)).status).toBe(200);
    expect(await readRefusal(await transcribe(parent, model))).toMatchObject({
      message: 'Too many requests in this minute: 6 are allowed.',
    });
  });

  it('closes when the seconds of its own are used up', async () => {
    startDay();
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const body = { scope: 'transcribe', allowance: { audio_seconds_per_day: 0.5 } };
    const token = await grantOf(body, { tenant, audit: 'strict' });
    expect((await transcribe(token, model)).status).toBe(200);
    expect(await readRefusal(await transcribe(token, model))).toMatchObject({ code: 'allowance_seconds' });
    expect((await transcribe(await makeToken({ tenant, audit: 'strict' }), model)).status).toBe(200);
  });

  it('alone has such an allowance: that claim of another issuer counts for nothing', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const token = await makeToken({ tenant, jti: 'one', share: { requestsPerMinute: 1 } });
    for (let n = 0; n < 2; n += 1) expect((await transcribe(token, model)).status).toBe(200);
  });

  it('lives an hour at most, also where OpenAI’s clients may ask for two', async () => {
    const body = { expires_after: { anchor: 'created_at', seconds: 7_200 } };
    const secret = (await (await post('/v1/realtime/client_secrets', body)).json()) as { expires_at: number };
    expect(secret.expires_at - NOW_S()).toBeLessThanOrEqual(3_600);
    expect(secret.expires_at - NOW_S()).toBeGreaterThan(3_500);
  });
});

describe('C10 POST /v1/realtime/client_secrets', () => {
  const session = {
    type: 'transcription',
    audio: { input: { transcription: { model: 'reference-en', language: 'en' }, turn_detection: null } },
  };

  it('gives a secret that remembers its session', async () => {
    const answer = await post('/v1/realtime/client_secrets', {
      expires_after: { anchor: 'created_at', seconds: 60 },
      session,
    });
    expect(answer.status).toBe(200);
    const secret = (await answer.json()) as { value: string; expires_at: number; session: object };
    expect(secret.value).toMatch(/^ek_[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(secret.expires_at - NOW_S()).toBeGreaterThan(50);
    expect(secret.expires_at - NOW_S()).toBeLessThanOrEqual(60);
    expect(secret.session).toMatchObject({ ...session, id: expect.stringMatching(/^sess_/) });
    expect(decodeJwt(strip(secret.value))).toMatchObject({ scope: 'stream', realtime: session });
  });

  it('lasts ten minutes by default', async () => {
    const answer = await post('/v1/realtime/client_secrets', {});
    const { expires_at } = (await answer.json()) as { expires_at: number };
    expect(Math.abs(expires_at - NOW_S() - 600)).toBeLessThanOrEqual(1);
  });

  it.each([
    [{ expires_after: { seconds: 9 } }, 'expires_after.seconds'],
    [{ expires_after: { seconds: 7_201 } }, 'expires_after.seconds'],
    [{ expires_after: { anchor: 'now' } }, 'expires_after.anchor'],
    [{ session: { type: 'realtime' } }, 'session.type'],
    [{ session: { audio: { input: { format: { type: 'audio/aac' } } } } }, 'session.audio.input.format.type'],
    [{ session: { audio: { input: { transcription: { prompt: 'x'.repeat(8_000) } } } } }, 'session'],
  ])('%# is refused for its field', async (body, param) => {
    const answer = await post('/v1/realtime/client_secrets', body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: 'field_invalid', param } });
  });

  it('refuses a body beyond all sessions', async () => {
    const answer = await post('/v1/realtime/client_secrets', { session: { x: 'x'.repeat(70_000) } });
    expect(answer.status).toBe(413);
  });
});
