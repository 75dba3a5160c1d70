// The functions tell what an upload has used; the tenant's gate books it.
import { env } from 'cloudflare:workers';
import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { eventId } from '../../../shared/audit/event-id.ts';
import { SERVICE_TYPE } from '../../../shared/callers.ts';
import { documentId, projectIdOf } from '../../../shared/jobs/project-id.ts';
import { EDGE_AUDIENCE, FUNCTIONS_ISSUER, type UploadUsage } from '../../../shared/jobs/usage.ts';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { keys, makeToken } from '../authority.ts';

const unique = () => `t-${crypto.randomUUID().slice(0, 8)}`;
const someUpload = () => `01890a5d-ac96-774b-bcce-${crypto.randomUUID().slice(-12)}`;

const usage = (tenant: string, change: Partial<UploadUsage> = {}): UploadUsage => ({
  tenant,
  upload: someUpload(),
  run: 1,
  home: 'eu',
  subject: 'alice',
  class: 'batch',
  model: 'reference-en',
  status: 200,
  seconds: 60,
  bytes: 900,
  milliseconds: 5_000,
  ...change,
});

async function sign(tenant: string, change: JWTPayload = {}, key = keys.service, typ = SERVICE_TYPE): Promise<string> {
  const iat = Math.floor(Date.now() / 1_000);
  const claims = { iss: FUNCTIONS_ISSUER, aud: EDGE_AUDIENCE, iat, exp: iat + 60, tenant, ...change };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ, kid: 'service-1' })
    .sign(await importJWK(key, 'ES256'));
}

async function tell(body: unknown, token: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return ask('/v1/usage', { method: 'POST', headers, body: JSON.stringify(body) });
}

const booked = async (tenant: string, home = 'eu') =>
  (await env.GATE.getByName(`${tenant}/${home}`).outbox(0, 50)).rows.map(({ event }) => event);

describe('C11: usage of an upload', () => {
  it('is recorded like that of requests and streams, once however often sent', async () => {
    const tenant = unique();
    const told = usage(tenant);
    for (let time = 0; time < 3; time += 1) {
      const answer = await tell(told, await sign(tenant));
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({ booked: true });
    }
    expect(await booked(tenant)).toEqual([
      {
        v: 1,
        id: expect.any(String),
        at: expect.any(Number),
        producer: 'edge',
        type: 'inference.complete',
        tenant,
        request: told.upload,
        action: 'upload.end',
        class: 'batch',
        model: 'reference-en',
        status: 200,
        audioSeconds: 60,
        bytes: 900,
        milliseconds: 5_000,
        subject: expect.stringMatching(/^c1:[0-9a-f]{64}$/),
      },
    ]);
  });

  it('exhausts its tenant’s day: the next upload is refused, other tenants’ are not', async () => {
    const tenant = unique();
    const functions = new FakeFunctions('eu');
    const model = `model-${tenant}`;
    await startAgent(model, { zone: 'eu' });
    const create = async (who: string) => {
      const claims = { tenant: who, audit: 'strict', allowance: { audioSecondsPerDay: 100 } };
      const headers = { authorization: `Bearer ${await makeToken(claims)}`, 'content-type': 'application/json' };
      return ask('/v1/uploads', { method: 'POST', headers, body: JSON.stringify({ model }) });
    };
    expect((await create(tenant)).status).toBe(201);
    const [asked] = functions.requests;
    const { home } = (asked as { body: { home: string } }).body;
    const first = usage(tenant, { home, seconds: 99 });
    for (let time = 0; time < 3; time += 1) await tell(first, await sign(tenant));
    const second = await create(tenant);
    expect(second.status).toBe(201);
    // U11: what the upload has used is booked.
    expect(second.headers.get('x-ratelimit-remaining-audio-seconds')).toBe('1');
    await tell(usage(tenant, { home, seconds: 2 }), await sign(tenant));
    expect(await readRefusal(await create(tenant))).toMatchObject({ status: 429, code: 'allowance_seconds' });
    expect((await create(unique())).status).toBe(201);
  });

  it('R2 books a spoken document and each of its editions once', async () => {
    const tenant = unique();
    const upload = documentId(projectIdOf(eventId(Date.now(), new Uint8Array(10))), 1);
    const told = usage(tenant, { upload, seconds: 30 });
    for (const change of [{}, {}, { edition: 1, seconds: 2 }, { edition: 1, seconds: 2 }]) {
      expect((await tell({ ...told, ...change }, await sign(tenant))).status).toBe(200);
    }
    expect(await booked(tenant)).toMatchObject([
      { request: upload, action: 'document.end', audioSeconds: 30 },
      { request: upload, action: 'document.end-1', audioSeconds: 2 },
    ]);
  });

  it('books each run, with the reason when it has no transcript', async () => {
    const tenant = unique();
    const told = usage(tenant, { status: 415, reason: 'audio_unsupported', seconds: 0 });
    await tell(told, await sign(tenant));
    await tell({ ...told, run: 2, status: 200, reason: undefined, seconds: 7 }, await sign(tenant));
    expect(await booked(tenant)).toMatchObject([
      { action: 'upload.end', status: 415, reason: 'audio_unsupported' },
      { action: 'upload.end.2', status: 200, audioSeconds: 7 },
    ]);
  });

  it('is believed from the functions only, and about the tenant they signed for', async () => {
    const tenant = unique();
    const told = usage(tenant);
    const wrong = [
      await sign(tenant, {}, keys.grant),
      await sign(tenant, { iss: 'auricle-edge' }),
      await sign(tenant, { aud: 'auricle-functions' }),
      await sign(tenant, {}, keys.service, 'JWT'),
      await sign(unique()),
      await sign(tenant, { iat: 1, exp: 60 }),
      await makeToken({ tenant }),
    ];
    for (const token of wrong) expect((await tell(told, token)).status).toBe(401);
    expect((await ask('/v1/usage', { method: 'POST', body: '{}' })).status).toBe(401);
    expect(await readRefusal(await tell({ ...told, seconds: -1 }, await sign(tenant)))).toMatchObject({
      status: 400,
      code: 'field_invalid',
    });
    expect(await booked(tenant)).toEqual([]);
  });
});
