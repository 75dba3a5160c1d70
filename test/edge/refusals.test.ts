import { describe, expect, it } from 'vitest';
import { ROSTER_GONE_MS } from '../../edge/routing/known-agents.ts';
import { SNAPSHOT_AGE_MS } from '../../edge/routing/snapshot.ts';
import { CLOCK_SKEW_S } from '../../shared/clock-offset.ts';
import { HEARTBEAT_GONE_MS } from '../../shared/pool/limits.ts';
import { CONTENT_TYPE_CHARACTERS } from '../../shared/speech/limits.ts';
import { ask, passTime, readRefusal, startAgent, startDay, upload } from '../fake/network.ts';
import { makeToken } from './authority.ts';
import { expectRefusal } from './expect-refusal.ts';

const model = () => `model-${crypto.randomUUID().slice(0, 8)}`;

describe('C4 A21 refused callers', () => {
  const rows: [string, () => Promise<string | null>, number, string, string][] = [
    ['no token', async () => null, 401, 'token_missing', 'No token was sent. Send "Authorization: Bearer <token>".'],
    ['not a token', async () => 'nonsense', 401, 'token_invalid', 'The token is not valid here.'],
    [
      'a forged token',
      async () => `${(await makeToken()).slice(0, -6)}AAAAAA`,
      401,
      'token_invalid',
      'The token is not valid here.',
    ],
    [
      'another issuer',
      () => makeToken({ iss: 'https://elsewhere.test' }),
      401,
      'token_invalid',
      'The token is not valid here.',
    ],
    [
      'an unsigned token',
      async () => unsigned(await makeToken()),
      401,
      'token_invalid',
      'The token is not valid here.',
    ],
    ['no tenant', () => makeToken({ tenant: undefined }), 401, 'token_invalid', 'The token is not valid here.'],
    [
      'not valid yet',
      () => makeToken({ nbf: Math.floor(Date.now() / 1_000) + 120 }),
      401,
      'token_invalid',
      'The token is not valid here.',
    ],
    ['expired', () => makeToken({}, -CLOCK_SKEW_S - 5), 401, 'token_expired', 'The token has expired.'],
    [
      'for another audience',
      () => makeToken({ aud: 'x' }),
      401,
      'audience_wrong',
      'The token was issued for another audience.',
    ],
    [
      'without the scope',
      () => makeToken({ scope: 'models' }),
      403,
      'scope_missing',
      'The token lacks the scope "transcribe".',
    ],
    [
      'with a pool scope only',
      () => makeToken({ scope: 'pool' }),
      403,
      'scope_missing',
      'The token lacks the scope "transcribe".',
    ],
  ];
  it.each(rows)('%s', async (_, token, status, code, message) => {
    const answer = await upload({ token: await token(), fields: [['model', 'reference-en']] });
    if (status === 401) expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="auricle"/);
    await expectRefusal(answer, status, code, 'never', message);
  });

  it('a token within the clock skew is let in', async () => {
    const name = model();
    await startAgent(name);
    const token = await makeToken({}, -5);
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
  });

  it('a token that expires while its claims are cached', async () => {
    const token = await makeToken({}, 10);
    const headers = { authorization: `bearer ${token}` };
    expect((await ask('/v1/models', { headers })).status).toBe(200);
    passTime((10 + CLOCK_SKEW_S + 1) * 1_000);
    expect(await readRefusal(await ask('/v1/models', { headers }))).toMatchObject({
      status: 401,
      code: 'token_expired',
    });
  });
});

describe('A21 C6 refused requests', () => {
  const bearer = async () => ({ authorization: `Bearer ${await makeToken()}` });
  const path = '/v1/audio/transcriptions';
  const rows: [string, () => Promise<Response>, number, string, string | RegExp][] = [
    [
      'an unknown model',
      async () => {
        await startAgent(model());
        return upload({ fields: [['model', 'nobody']] });
      },
      404,
      'model_unknown',
      // Models of other tests may be there as well.
      /^The model "nobody" does not exist here\. Available: .*\.$/,
    ],
    [
      'a name that is no model name',
      () => upload({ fields: [['model', '../x']] }),
      400,
      'field_invalid',
      'The field "model" is not valid: must be the name of a model, as GET /v1/models lists it.',
    ],
    ['no model', () => upload({}), 400, 'field_missing', 'The field "model" is missing.'],
    [
      'a language that is no tag',
      () =>
        upload({
          fields: [
            ['model', 'm'],
            ['language', 'klingon!'],
          ],
        }),
      400,
      'field_invalid',
      'The field "language" is not valid: must be a language such as "en" or "english", a list of them, or "auto".',
    ],
    [
      'a language the tenant may not use',
      async () =>
        upload({
          token: await makeToken({ languages: ['fr'] }),
          fields: [
            ['model', 'm'],
            ['language', 'en'],
          ],
        }),
      403,
      'language_forbidden',
      'The token does not allow the language "en".',
    ],
    [
      'a language the model does not know',
      async () => {
        const name = model();
        await startAgent(name);
        return upload({
          fields: [
            ['model', name],
            ['language', 'de'],
          ],
        });
      },
      400,
      'language_unknown',
      /^The model "model-[0-9a-f]{8}" does not support the language "de"\.$/,
    ],
    [
      'a zone that the token does not allow',
      async () => {
        const name = model();
        await startAgent(name);
        await startAgent(model(), { zone: 'us' });
        return upload({ token: await makeToken({ zones: ['us'] }), fields: [['model', name]] });
      },
      403,
      'residency_mismatch',
      'The model is not served in a region the token allows.',
    ],
    [
      'a tenant that seals by itself',
      async () => upload({ token: await makeToken({ sealing: 'client' }), fields: [['model', 'm']] }),
      403,
      'sealing_required',
      'The token requires content that the client has sealed. This content would reach the edge unsealed.',
    ],
    [
      'JSON',
      async () =>
        ask(path, { method: 'POST', headers: { ...(await bearer()), 'content-type': 'application/json' }, body: '{}' }),
      415,
      'content_type_wrong',
      'The body must be multipart/form-data.',
    ],
    [
      'no content type',
      async () => ask(path, { method: 'POST', headers: await bearer(), body: new Uint8Array(3) }),
      415,
      'content_type_wrong',
      'The body must be multipart/form-data.',
    ],
    [
      'a form without boundary',
      async () =>
        ask(path, {
          method: 'POST',
          headers: { ...(await bearer()), 'content-type': 'multipart/form-data; x=y' },
          body: 'x',
        }),
      400,
      'content_type_invalid',
      'The content type of the body is not valid: it needs a boundary of 1 to 70 characters.',
    ],
    [
      'a form and nothing else',
      async () =>
        ask(path, {
          method: 'POST',
          headers: { ...(await bearer()), 'content-type': 'multipart/form-data' },
          body: 'x',
        }),
      400,
      'content_type_invalid',
      'The content type of the body is not valid: it needs a boundary of 1 to 70 characters.',
    ],
    [
      'a content type without end',
      async () =>
        ask(path, {
          method: 'POST',
          headers: {
            ...(await bearer()),
            'content-type': `multipart/form-data; boundary=x; y=${'z'.repeat(CONTENT_TYPE_CHARACTERS)}`,
          },
          body: 'x',
        }),
      400,
      'content_type_invalid',
      'The content type of the body is not valid: it has more than 1024 characters.',
    ],
    [
      '200 MB, announced',
      async () =>
        ask(path, {
          method: 'POST',
          headers: {
            ...(await bearer()),
            'content-type': 'multipart/form-data; boundary=x',
            'content-length': '200000000',
          },
        }),
      413,
      'body_too_large',
      'The body is over 134217728 bytes. Split it into several requests.',
    ],
    [
      '9 MB without hints',
      () => upload({ file: new Uint8Array(9_000_000), fields: [['model', 'm']] }),
      400,
      'hints_missing',
      'The field "model" is not in the first 8388608 bytes of the body. Put it before the file, or add ?model= to the address, or send the header x-auricle-model.',
    ],
    [
      'an address that does not exist',
      () => ask('/v1/nothing'),
      404,
      'route_unknown',
      'This address does not exist. GET /v1/openapi.json lists those that do.',
    ],
    [
      'a method the address does not answer',
      () => ask(path),
      405,
      'method_wrong',
      'This address accepts POST, OPTIONS only.',
    ],
    [
      'an upgrade that is none',
      async () =>
        ask('/v1/pools/heartbeat', {
          headers: {
            authorization: `Bearer ${await makeToken({ tenant: undefined, scope: 'pool', pool: 'p', zone: 'eu' })}`,
          },
        }),
      426,
      'upgrade_missing',
      'This address accepts WebSocket connections only.',
    ],
    [
      "a heartbeat with a tenant's token",
      async () => ask('/v1/pools/heartbeat', { headers: await bearer() }),
      403,
      'scope_missing',
      'The token lacks the scope "pool".',
    ],
  ];
  it.each(rows)('%s', async (_, call, status, code, message) => {
    const answer = await call();
    await expectRefusal(answer, status, code, 'never', message);
    if (status === 405) expect(answer.headers.get('allow')).toBe('POST, OPTIONS');
  });

  it('a model after its last agent left', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.leave();
    await agent.closed;
    passTime(SNAPSHOT_AGE_MS);
    const answer = await upload({ fields: [['model', name]] });
    await expectRefusal(answer, 503, 'no_pool', 'soon', 'No pool can take the request at the moment.');
  });

  it.each([
    ['model', '2 MB without hints', { file: new Uint8Array(2_000_000), fields: [['model', 'm']] }],
    ['model', 'an unknown model', { fields: [['model', 'nobody']] }],
    ['language', 'an unknown language', { fields: [['language', 'de']] }],
    ['temperature', 'a field', { fields: [['temperature', '3']] }],
  ] as const)('%s names the field at fault: %s', async (param, _, given) => {
    const name = model();
    await startAgent(name);
    const fields: readonly (readonly [string, string])[] = given.fields;
    const named = fields.some(([field]) => field === 'model') ? fields : [...fields, ['model', name] as const];
    const answer = await upload({ ...given, fields: named });
    expect(await answer.json()).toMatchObject({ error: { param } });
  });

  it('a body that hides its model is refused with three remedies', async () => {
    const { message } = await readRefusal(await upload({ file: new Uint8Array(9_000_000), fields: [['model', 'm']] }));
    for (const way of ['before the file', '?model=', 'x-auricle-model']) expect(message).toContain(way);
  });

  it('no agent at all', async () => {
    passTime(ROSTER_GONE_MS + HEARTBEAT_GONE_MS);
    const answer = await upload({ fields: [['model', 'reference-en']] });
    await expectRefusal(answer, 503, 'no_pool', 'soon', 'No pool can take the request at the moment.');
  });
});

describe('U11 C6 headers of the allowance', () => {
  const figures = ({ headers }: Response, kind: string) =>
    ['limit', 'remaining', 'reset'].map((what) => headers.get(`x-ratelimit-${what}-${kind}`));

  it.each(['strict', 'buffered'])('count down with each request of one isolate, record %s', async (audit) => {
    const name = model();
    await startAgent(name);
    // Enough for the isolate to hold places in advance: most of these requests ask no gate.
    const allowance = { requestsPerMinute: 1_000, requestsAtOnce: 100, audioSecondsPerDay: 7_200 };
    const token = await makeToken({ tenant: `t-${name}`, audit, allowance });
    const left: unknown[] = [];
    for (let n = 0; n < 8; n += 1) {
      const answer = await upload({ token, fields: [['model', name]] });
      expect(answer.status).toBe(200);
      const [limit, remaining, reset] = figures(answer, 'requests');
      expect(limit).toBe('1000');
      expect(reset).toMatch(/^\d{2,3}s$/);
      left.push(Number(remaining));
      expect(figures(answer, 'audio-seconds')[0]).toBe('7200');
    }
    expect(left).toEqual([999, 998, 997, 996, 995, 994, 993, 992]);
  });

  it('are in refusals of tensors and Deepgram, and in a 101', async () => {
    const name = model();
    await startAgent(name);
    const token = await makeToken({
      tenant: `t-${name}`,
      scope: 'transcribe infer',
      allowance: { requestsPerMinute: 4 },
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'audio/wav' };
    const post = (path: string) => ask(path, { method: 'POST', headers, body: new Uint8Array(10) });
    expect(figures(await upload({ token, fields: [['model', 'none']] }), 'requests').slice(0, 2)).toEqual(['4', '3']);
    expect(figures(await post('/v2/models/none/infer'), 'requests').slice(0, 2)).toEqual(['4', '2']);
    expect(figures(await post('/v1/listen?model=none'), 'requests').slice(0, 2)).toEqual(['4', '1']);
    const opened = await ask('/v1/stream', { headers: { ...headers, upgrade: 'websocket' } });
    expect(opened.status).toBe(101);
    // The session counts as it starts, which is after the upgrade.
    expect(figures(opened, 'requests').slice(0, 2)).toEqual(['4', '1']);
    opened.webSocket?.accept();
    opened.webSocket?.close(1000, 'done');
  });

  it('none where nothing was counted', async () => {
    expect(figures(await upload({ token: null }), 'requests')).toEqual([null, null, null]);
  });
});

describe('A21 C6 the allowance', () => {
  const twice = async (allowance: Record<string, number>) => {
    startDay();
    const name = model();
    const agent = await startAgent(name);
    const token = await makeToken({ tenant: `t-${name}`, allowance });
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
    return { agent, again: () => upload({ token, fields: [['model', name]] }) };
  };

  it('requests of a minute', async () => {
    const { agent, again } = await twice({ requestsPerMinute: 1 });
    const answer = await again();
    const message = 'Too many requests in this minute: 1 are allowed.';
    await expectRefusal(answer, 429, 'allowance_requests', 'minute', message);
    expect(agent.requests).toBe(1);
  });

  it('seconds of a day', async () => {
    const { again } = await twice({ audioSecondsPerDay: 5 });
    const answer = await again();
    const message = "Today's allowance of 5 seconds of audio is used up.";
    await expectRefusal(answer, 429, 'allowance_seconds', 'day', message);
    // The time until midnight, as the headers of the same answer say it.
    expect(`${answer.headers.get('retry-after')}s`).toBe(answer.headers.get('x-ratelimit-reset-audio-seconds'));
    expect(answer.headers.get('x-ratelimit-remaining-audio-seconds')).toBe('0');
  });

  it('minute and day used up: the longer wait, without a retry', async () => {
    const { again } = await twice({ requestsPerMinute: 1, audioSecondsPerDay: 5 });
    const answer = await again();
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(3_600);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(Number.parseInt(answer.headers.get('x-ratelimit-reset-requests') ?? '', 10)).toBeLessThanOrEqual(60);
  });

  it('places at once come back when the request ends', async () => {
    const { again } = await twice({ requestsAtOnce: 1 });
    expect((await again()).status).toBe(200);
  });

  it('a place at once that is taken', async () => {
    const name = model();
    const agent = await startAgent(name);
    const token = await makeToken({ tenant: `t-${name}`, allowance: { requestsAtOnce: 1 } });
    let second: Promise<void> | undefined;
    const message = 'Too many requests at once: 1 are allowed.';
    const ordinary = agent.script;
    agent.script = async function* (received) {
      second ??= upload({ token, fields: [['model', name]] }).then((answer) =>
        expectRefusal(answer, 429, 'allowance_concurrent', 'soon', message),
      );
      // The first request has its place until the second has been answered.
      await second.catch(() => {});
      yield* ordinary(received);
    };
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
    expect(second).toBeDefined();
    await second;
  });
});

/** Returns the same claims without a signature (`alg: none`). */
function unsigned(token: string): string {
  const header = Buffer.from('{"alg":"none"}').toString('base64url');
  return `${header}.${token.split('.')[1]}.AAAA`;
}
