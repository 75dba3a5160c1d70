// Operators' requests about model revisions are forwarded to the functions; other callers' are not.
import { beforeEach, describe, expect, it } from 'vitest';
import { describedVersion, listedVersions, torchserveError } from '../../../edge/protocol/torchserve.ts';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

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

let eu: FakeFunctions;
beforeEach(() => {
  eu = new FakeFunctions('eu');
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
])('C7: %s %s calls the functions for an operator', async (method, path, body, line, answered, status) => {
  eu.plain = () => Response.json(answered);
  const response = await call(method, path, body);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual(path === '/aliases' ? { object: 'list', data: state.aliases } : answered);
  expect(eu.requests.map(({ line: asked, claims }) => [asked, claims.operate])).toEqual([[line, true]]);
});

it('C7: refuses malformed requests and callers without the scope here', async () => {
  expect(await readRefusal(await call('POST', '/transitions', { envelope: 5 }))).toMatchObject({
    code: 'field_invalid',
  });
  expect(await readRefusal(await call('POST', '/transitions', { envelope: {} }))).toMatchObject({
    message: 'The field "envelope.payload" is missing.',
  });
  expect(await readRefusal(await call('GET', '/revisions', undefined, 'models'))).toMatchObject({
    code: 'scope_missing',
  });
  expect(eu.requests).toEqual([]);
});

it.each([
  ['PUT', '/aliases/stable', {}],
  ['GET', '/revisions?at=yesterday', undefined],
  ['GET', '/transitions?after=1e2', undefined],
] as const)('C10 refuses %s %s before calling the functions', async (method, path, body) => {
  expect(await readRefusal(await call(method, path, body))).toMatchObject({ status: 400, code: 'field_invalid' });
  expect(eu.requests).toEqual([]);
});

it.each([
  ['GET', '/revisions/%zz'],
  ['GET', '/revisions/%E0%A4/evidence'],
  ['GET', '/transitions/%'],
  ['PUT', '/aliases/%ff'],
])('C10 finds nothing at an address that is not encoded UTF-8: %s %s', async (method, path) => {
  const body = method === 'PUT' ? { revision: A } : undefined;
  expect(await readRefusal(await call(method, path, body))).toMatchObject({ status: 404, code: 'route_unknown' });
  expect(eu.requests).toEqual([]);
});

it('C7: passes on refusals of the functions and reports unreachable ones', async () => {
  eu.refusal = { reason: 'gate_closed', params: { rule: '"rates" is INCONCLUSIVE' } };
  expect(await readRefusal(await call('POST', '/transitions', { envelope }))).toMatchObject({ code: 'gate_closed' });
  eu.plain = () => new Response('?', { status: 500 });
  expect(await readRefusal(await call('GET', '/revisions'))).toMatchObject({ code: 'models_unavailable' });
});

describe("T1: versions, as TorchServe's management API speaks of them", () => {
  const B = `sha256:${'b'.repeat(64)}`;
  const row = (revision: string, registered: number, stage: string) => ({
    ...{ revision, author: 'ann', registered, stage, since: registered },
    aliases: revision === A ? ['stable'] : [],
  });
  const two = { ...state, revisions: [row(A, 1, 'full'), row(B, 2, 'develop-verify')] };
  const manage = async (method: string, path: string, scope = 'operate') =>
    ask(`/v1/torchserve${path}`, { method, headers: { authorization: `Bearer ${await makeToken({ scope })}` } });
  const lines = () => eu.requests.map(({ line }) => line);
  /** Answers the query for the model itself, then calls `then`. */
  const answers = (then: () => Response) => {
    eu.plain = () => (lines().at(-1) === 'GET /api/models/reference-en' ? Response.json(two) : then());
  };
  const refusedAs = async (response: Response) => {
    const error = torchserveError.strict().parse(await response.json());
    expect(error.code).toBe(response.status);
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    return error;
  };

  it('lists models by pages', async () => {
    const models = Array.from({ length: 3 }, (_, at) => ({ model: `m${at}`, ...(at === 0 && { stable: A }) }));
    eu.plain = () => Response.json({ models });
    const first = listedVersions.strict().parse(await (await manage('GET', '/models?limit=2')).json());
    expect(first).toEqual({
      models: [
        { modelName: 'm0', modelUrl: A },
        { modelName: 'm1', modelUrl: '' },
      ],
      nextPageToken: '2',
    });
    const rest = await (await manage('GET', '/models?limit=2&next_page_token=2')).json();
    expect(rest).toEqual({ models: [{ modelName: 'm2', modelUrl: '' }] });
    expect(await (await manage('GET', '/models?limit=x&next_page_token=-1')).json()).toMatchObject({
      models: [{}, {}, {}],
    });
    expect(lines()[0]).toBe('GET /api/models');
  });

  it('describes the default version, one, and all, with the agents that have it', async () => {
    const revision = `sha256:${'1'.repeat(64)}`;
    const name = `model-${crypto.randomUUID().slice(0, 8)}`;
    const agent = await startAgent(name, { revision });
    eu.plain = () => Response.json({ ...two, model: name, revisions: [row(A, 1, 'full'), row(revision, 2, 'canary')] });
    const read = async (path: string) => {
      const all = (await (await manage('GET', `/models/${name}${path}`)).json()) as unknown[];
      return all.map((one) => describedVersion.strict().parse(one));
    };
    expect(await read('')).toMatchObject([{ modelVersion: '1', modelUrl: A, defaultVersion: true, workers: [] }]);
    expect(await read('/2')).toEqual([
      {
        ...{ modelName: name, modelVersion: '2', modelUrl: revision, minWorkers: 1, maxWorkers: 1 },
        workers: [{ id: agent.name, startTime: '2023-11-14T22:13:20.000Z', status: 'READY', gpu: false }],
        ...{ defaultVersion: false, stage: 'canary' },
      },
    ]);
    expect((await read('/all')).map(({ modelVersion }) => modelVersion)).toEqual(['1', '2']);
    expect(await read(`/${encodeURIComponent(revision)}`)).toEqual(await read('/2'));
  });

  it('sets the default version from what it is, and retires another one', async () => {
    answers(() => Response.json(state.aliases[0]));
    const set = await manage('PUT', '/models/reference-en/2/set-default');
    expect(await set.json()).toEqual({ status: 'Default version of model "reference-en" is now "2"' });
    expect(lines().at(-1)).toBe('PUT /api/models/reference-en/aliases/stable');
    expect(eu.requests.at(-1)).toMatchObject({ body: { revision: B, from: A }, claims: { operate: true } });
    answers(() => Response.json(moved));
    const gone = await manage('DELETE', '/models/reference-en/2');
    expect(await gone.json()).toEqual({ status: 'Model "reference-en" version "2" unregistered' });
    expect(lines().at(-1)).toBe(`DELETE /api/models/reference-en/revisions/${encodeURIComponent(B)}`);
  });

  it('refuses in its shape: unknown, unavailable, forbidden', async () => {
    eu.plain = () => Response.json({ ...state, revisions: [], aliases: [] });
    expect(await refusedAs(await manage('GET', '/models/reference-en'))).toMatchObject({
      ...{ code: 404, type: 'ModelNotFoundException' },
      message: 'The model "reference-en" does not exist here.',
    });
    eu.plain = () => Response.json({ ...two, aliases: [] });
    const none = ['/models/reference-en', '/models/reference-en/3', '/models/reference-en/%ff'];
    for (const path of none)
      expect(await refusedAs(await manage('GET', path))).toMatchObject({ type: 'ModelVersionNotFoundException' });
    for (const [method, path] of [
      ['DELETE', '/3'],
      ['PUT', '/3/set-default'],
    ] as const)
      expect(await refusedAs(await manage(method, `/models/reference-en${path}`))).toMatchObject({ code: 404 });
    const closed = { error: { reason: 'gate_closed', params: { rule: 'the alias "stable" names it' } } };
    answers(() => Response.json(closed, { status: 422 }));
    expect(await refusedAs(await manage('DELETE', '/models/reference-en/1'))).toEqual({
      ...{ code: 422, type: 'InvalidModelVersionException' },
      message: 'The gate stays closed: the alias "stable" names it.',
    });
    expect(await refusedAs(await manage('GET', '/models', 'models'))).toMatchObject({ type: 'InvalidKeyException' });
    expect(await refusedAs(await ask('/v1/torchserve/models'))).toMatchObject({ code: 401 });
    expect(await refusedAs(await manage('POST', '/models'))).toMatchObject({ type: 'MethodNotAllowedException' });
    expect(await refusedAs(await manage('GET', '/workflows'))).toMatchObject({ type: 'ResourceNotFoundException' });
    eu.plain = () => new Response('?', { status: 500 });
    expect(await refusedAs(await manage('GET', '/models'))).toMatchObject({ type: 'ServiceUnavailableException' });
  });
});
