import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { issueGrant } from '../../edge/tenant/grant.ts';
import { readClaims } from '../../shared/tenant/claims.ts';
import { makeToken } from './authority.ts';
import { ask, passTime } from './network.ts';
import { makeSettings } from './settings-double.ts';

const NOW_S = () => Math.floor(Date.now() / 1_000);
const post = async (path: string, body?: unknown, claims: Record<string, unknown> = {}, life = 10_000) =>
  ask(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${await makeToken(claims, life)}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
const strip = (secret: string) => secret.replace(/^ek_/, '');

describe('C10 POST /v1/auth/grant', () => {
  it('gives a token of half a minute that opens live sound and nothing else', async () => {
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

  it('as long as asked for, and never longer than the token it was made of', async () => {
    const asked = await post('/v1/auth/grant', { ttl_seconds: 120 });
    expect(await asked.json()).toMatchObject({ expires_in: 120 });
    const short = await post('/v1/auth/grant', { ttl_seconds: 3_600 }, {}, 100);
    const { expires_in } = (await short.json()) as { expires_in: number };
    expect(expires_in).toBeLessThanOrEqual(100);
  });

  it('which is worth nothing afterwards', async () => {
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
    expect(await issueGrant(claims.value, 30, settings, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'grant_closed' },
    });
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

  it('of ten minutes without a wish', async () => {
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

describe('§3-9 POST /v1/realtime/transcription_sessions, the retired shape', () => {
  it('answers the session with its secret inside', async () => {
    const answer = await post('/v1/realtime/transcription_sessions', {
      input_audio_format: 'g711_alaw',
      input_audio_transcription: { model: 'reference-en' },
    });
    expect(await answer.json()).toMatchObject({
      object: 'realtime.transcription_session',
      input_audio_format: 'g711_alaw',
      input_audio_transcription: { model: 'reference-en' },
      client_secret: { value: expect.stringMatching(/^ek_/), expires_at: expect.any(Number) },
    });
  });
});
