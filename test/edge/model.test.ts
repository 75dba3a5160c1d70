// What operators ask about revisions of models goes to the functions that keep them, and nobody else's does.
import { beforeEach, expect, it } from 'vitest';
import { makeToken } from './authority.ts';
import { BackOffice } from './back-office-double.ts';
import { ask, readRefusal } from './network.ts';

const A = `sha256:${'a'.repeat(64)}`;
const id = '1'.repeat(64);
const envelope = {
  payload: 'e30=',
  payloadType: 'application/vnd.in-toto+json',
  signatures: [{ keyid: '', sig: 'MAAA' }],
};
const state = {
  model: 'reference-en',
  seq: 3,
  at: 5,
  revisions: [],
  aliases: [{ alias: 'stable', revision: A, since: 5 }],
};
const moved = {
  id,
  revision: A,
  from: { stage: 'develop-verify' },
  to: { stage: 'grey' },
  signers: ['ann'],
  missing: 0,
};

const kept = {
  ...{ revision: A, author: 'ann', registered: 1, stage: 'grey', since: 2, aliases: [], description: {} },
  bundle: {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: '' } },
    dsseEnvelope: envelope,
  },
};

let eu: BackOffice;
beforeEach(() => {
  eu = new BackOffice('eu');
});

async function call(method: string, path: string, body?: unknown, scope = 'operate'): Promise<Response> {
  const headers = { authorization: `Bearer ${await makeToken({ scope })}`, 'content-type': 'application/json' };
  return ask(`/v1/models/reference-en${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

it.each([
  ['GET', '/revisions?at=2026-01-01', undefined, 'GET /api/models/reference-en?at=2026-01-01', state, 200],
  ['GET', `/revisions/${A}`, undefined, `GET /api/models/reference-en/revisions/${A}`, kept, 200],
  ['GET', '/aliases', undefined, 'GET /api/models/reference-en', state, 200],
  ['GET', '/transitions?after=2', undefined, 'GET /api/models/reference-en/transitions?after=2', { entries: [] }, 200],
  [
    'GET',
    `/transitions/${id}`,
    undefined,
    `GET /api/models/reference-en/transitions/${id}`,
    { ...moved, envelope },
    200,
  ],
  ['POST', '/transitions', { envelope }, 'POST /api/models/reference-en/transitions', moved, 200],
  ['POST', '/transitions', { envelope }, 'POST /api/models/reference-en/transitions', { ...moved, missing: 1 }, 202],
  ['PUT', '/aliases/stable', { revision: A }, 'PUT /api/models/reference-en/aliases/stable', state.aliases[0], 200],
])('M3: %s %s is asked of the functions, by an operator', async (method, path, body, line, answered, status) => {
  eu.plain = () => Response.json(answered);
  const response = await call(method, path, body);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual(path === '/aliases' ? { object: 'list', data: state.aliases } : answered);
  expect(eu.asked.map(({ line: asked, claims }) => [asked, claims.operate])).toEqual([[line, true]]);
});

it('M3: what is not as agreed, and whoever may not operate, is refused here', async () => {
  expect(await readRefusal(await call('POST', '/transitions', { envelope: {} }))).toMatchObject({
    code: 'field_invalid',
  });
  expect(await readRefusal(await call('GET', '/revisions', undefined, 'models'))).toMatchObject({
    code: 'scope_missing',
  });
  expect(eu.asked).toEqual([]);
});

it('M3: a "no" of the functions is passed on, and what cannot be reached is said', async () => {
  eu.refusal = { reason: 'gate_closed', params: { rule: '"rates" is INCONCLUSIVE' } };
  expect(await readRefusal(await call('POST', '/transitions', { envelope }))).toMatchObject({ code: 'gate_closed' });
  eu.plain = () => new Response('?', { status: 500 });
  expect(await readRefusal(await call('GET', '/revisions'))).toMatchObject({ code: 'models_unavailable' });
});
