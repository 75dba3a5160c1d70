import { describe, expect, it } from 'vitest';
import { limits } from '../../shared/limits.ts';
import { makeToken } from './authority.ts';
import { ask, passTime, readRefusal, startAgent, upload } from './network.ts';

const model = () => `model-${crypto.randomUUID().slice(0, 8)}`;

/** Headers that every refusal has; retry headers only where retrying may help. */
function expectHeaders(answer: Response, retry: boolean): void {
  expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('x-should-retry')).toBe(String(retry));
  const seconds = answer.headers.get('retry-after');
  expect(seconds !== null).toBe(retry);
  if (retry) {
    expect(Number(seconds)).toBeLessThanOrEqual(60);
    expect(answer.headers.get('retry-after-ms')).toBe(String(Number(seconds) * 1_000));
  }
}

describe('C4 A21 who may not come in', () => {
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
    [
      'expired',
      () => makeToken({}, -limits.clockSkewSeconds.value - 5),
      401,
      'token_expired',
      'The token has expired.',
    ],
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
    expectHeaders(answer, false);
    if (status === 401) expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="auricle"/);
    expect(await readRefusal(answer)).toEqual({ status, code, message });
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
    passTime((10 + limits.clockSkewSeconds.value + 1) * 1_000);
    expect(await readRefusal(await ask('/v1/models', { headers }))).toMatchObject({
      status: 401,
      code: 'token_expired',
    });
  });
});

describe('A21 C6 what cannot be asked for', () => {
  const bearer = async () => ({ authorization: `Bearer ${await makeToken()}` });
  const path = '/v1/audio/transcriptions';
  const rows: [string, () => Promise<Response>, number, string, boolean][] = [
    [
      'an unknown model',
      async () => {
        await startAgent(model());
        return upload({ fields: [['model', 'nobody']] });
      },
      404,
      'model_unknown',
      false,
    ],
    ['a name that is no model name', () => upload({ fields: [['model', '../x']] }), 400, 'field_invalid', false],
    ['no model', () => upload({}), 400, 'field_missing', false],
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
      false,
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
      false,
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
      false,
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
      false,
    ],
    [
      'a tenant that seals by itself',
      async () => upload({ token: await makeToken({ sealing: 'client' }), fields: [['model', 'm']] }),
      403,
      'sealing_required',
      false,
    ],
    [
      'JSON',
      async () =>
        ask(path, { method: 'POST', headers: { ...(await bearer()), 'content-type': 'application/json' }, body: '{}' }),
      415,
      'content_type_wrong',
      false,
    ],
    [
      'no content type',
      async () => ask(path, { method: 'POST', headers: await bearer(), body: new Uint8Array(3) }),
      415,
      'content_type_wrong',
      false,
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
      false,
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
      false,
    ],
    [
      '2 MB without hints',
      () => upload({ file: new Uint8Array(2_000_000), fields: [['model', 'm']] }),
      400,
      'hints_missing',
      false,
    ],
    ['an address that does not exist', () => ask('/v1/nothing'), 404, 'route_unknown', false],
    ['a method the address does not answer', () => ask(path), 405, 'method_wrong', false],
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
      false,
    ],
    [
      "a heartbeat with a tenant's token",
      async () => ask('/v1/pools/heartbeat', { headers: await bearer() }),
      403,
      'scope_missing',
      false,
    ],
  ];
  it.each(rows)('%s', async (_, call, status, code, retry) => {
    const answer = await call();
    expectHeaders(answer, retry);
    const refusal = await readRefusal(answer);
    expect(refusal).toMatchObject({ status, code });
    expect(refusal.message).not.toMatch(/\{\w+\}/);
    if (status === 405) expect(answer.headers.get('allow')).toBe('POST, OPTIONS');
  });

  it('a model whose last agent just went', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.leave();
    await agent.closed;
    passTime(limits.snapshotAgeMs.value);
    const answer = await upload({ fields: [['model', name]] });
    expectHeaders(answer, true);
    expect(await readRefusal(answer)).toMatchObject({ status: 503, code: 'no_pool' });
  });

  it.each([
    ['model', '2 MB without hints', { file: new Uint8Array(2_000_000), fields: [['model', 'm']] }],
    ['model', 'an unknown model', { fields: [['model', 'nobody']] }],
    ['language', 'an unknown language', { fields: [['language', 'de']] }],
    ['temperature', 'a field', { fields: [['temperature', '3']] }],
  ] as const)('%s is told as the field at fault: %s', async (param, _, given) => {
    const name = model();
    await startAgent(name);
    const fields: readonly (readonly [string, string])[] = given.fields;
    const named = fields.some(([field]) => field === 'model') ? fields : [...fields, ['model', name] as const];
    const answer = await upload({ ...given, fields: named });
    expect(await answer.json()).toMatchObject({ error: { param } });
  });

  it('a body that hides its model is told three ways to show it', async () => {
    const { message } = await readRefusal(await upload({ file: new Uint8Array(2_000_000), fields: [['model', 'm']] }));
    for (const way of ['before the file', '?model=', 'x-auricle-model']) expect(message).toContain(way);
  });

  it('no agent at all', async () => {
    passTime(limits.rosterGoneMs.value + limits.heartbeatGoneMs.value);
    const answer = await upload({ fields: [['model', 'reference-en']] });
    expectHeaders(answer, true);
    expect(await readRefusal(answer)).toEqual({
      status: 503,
      code: 'no_pool',
      message: 'No pool can take the request at the moment.',
    });
  });
});

describe('A21 C6 the allowance', () => {
  const twice = async (allowance: Record<string, number>) => {
    const name = model();
    const agent = await startAgent(name);
    const token = await makeToken({ tenant: `t-${name}`, allowance });
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
    return { agent, again: () => upload({ token, fields: [['model', name]] }) };
  };

  it('requests of a minute', async () => {
    const { agent, again } = await twice({ requestsPerMinute: 1 });
    const answer = await again();
    expectHeaders(answer, true);
    expect(await readRefusal(answer)).toEqual({
      status: 429,
      code: 'allowance_requests',
      message: 'Too many requests in this minute: 1 are allowed.',
    });
    expect(agent.requests).toBe(1);
  });

  it('seconds of a day', async () => {
    const { again } = await twice({ audioSecondsPerDay: 5 });
    const answer = await again();
    expectHeaders(answer, true);
    expect(await readRefusal(answer)).toMatchObject({ status: 429, code: 'allowance_seconds' });
  });

  it('places at once come back when the request ends', async () => {
    const { again } = await twice({ requestsAtOnce: 1 });
    expect((await again()).status).toBe(200);
  });

  it('a place at once that is taken', async () => {
    const name = model();
    const agent = await startAgent(name);
    const token = await makeToken({ tenant: `t-${name}`, allowance: { requestsAtOnce: 1 } });
    let second: ReturnType<typeof readRefusal> | undefined;
    const ordinary = agent.script;
    agent.script = async function* (received) {
      second ??= upload({ token, fields: [['model', name]] }).then(readRefusal);
      // The first request has its place until the second has been answered.
      await second;
      yield* ordinary(received);
    };
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
    expect(await second).toMatchObject({ status: 429, code: 'allowance_concurrent' });
  });
});

describe('A21 C6 what an agent says', () => {
  const rows: [string, Record<string, string | number>, number, string, boolean][] = [
    ['audio_empty', {}, 400, 'The file is empty.', false],
    ['audio_truncated', {}, 400, 'The audio file ends before its header says it should.', false],
    [
      'audio_invalid',
      { rule: 'the sample rate is 0' },
      400,
      'The audio file cannot be decoded: the sample rate is 0.',
      false,
    ],
    ['engine_failed', {}, 502, 'The recogniser failed on this request.', true],
    ['deadline_passed', {}, 504, 'The request was not finished in time.', true],
  ];
  it.each(rows)('%s reaches the caller', async (reason, params, status, message, retry) => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'refusal', reason: reason as 'audio_empty', params };
    };
    const answer = await upload({ fields: [['model', name]] });
    expectHeaders(answer, retry);
    expect(await readRefusal(answer)).toEqual({ status, code: reason, message });
  });

  it.each(['ticket_invalid', 'ticket_replayed', 'misdirected', 'seal_broken', 'nonsense'])(
    'plain %s is told as a lost pool',
    async (reason) => {
      const name = model();
      const agent = await startAgent(name);
      agent.plain = () => Response.json({ reason }, { status: 403 });
      const answer = await upload({ fields: [['model', name]] });
      expectHeaders(answer, true);
      expect(await readRefusal(answer)).toMatchObject({ status: 502, code: 'pool_lost' });
    },
  );

  it('an answer that ends without final', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'keepalive' };
    };
    expect(await readRefusal(await upload({ fields: [['model', name]] }))).toMatchObject({
      status: 502,
      code: 'pool_lost',
    });
  });

  it('a form that is not what the header promised', async () => {
    const name = model();
    await startAgent(name);
    const answer = await upload({ headers: { 'x-auricle-model': name }, fields: [['model', 'other']] });
    expect(await readRefusal(answer)).toMatchObject({ status: 400, code: 'hints_conflict' });
  });

  it.each([
    ['response_format', 'diarized_json'],
    ['response_format', 'docx'],
    ['temperature', '3'],
    ['include[]', 'logprobs'],
  ])('a form with %s=%s', async (field, value) => {
    const name = model();
    await startAgent(name);
    const answer = await upload({
      fields: [
        ['model', name],
        [field, value],
      ],
    });
    expect(await readRefusal(answer)).toMatchObject({ status: 400, code: 'field_invalid' });
  });
});

/** The same claims, signed by nobody (`alg: none`). */
function unsigned(token: string): string {
  const header = Buffer.from('{"alg":"none"}').toString('base64url');
  return `${header}.${token.split('.')[1]}.AAAA`;
}
