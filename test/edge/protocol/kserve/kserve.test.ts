import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ANSWER_BUFFERED_BYTES } from '../../../../edge/protocol/kserve/render-answer.ts';
import { SNAPSHOT_AGE_MS } from '../../../../edge/routing/snapshot.ts';
import { decodeInferResponse } from '../../../../shared/kserve/infer-response.ts';
import { bearer, doubling, finalOf, infer, join, readError, row } from '../../../fake/kserve-agent.ts';
import { ask, passTime, startAgent } from '../../../fake/network.ts';

/** Rosters outlive a test, so every test has a model that no other agent serves. */
const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const get = async (path: string, claims: Record<string, unknown> = {}) => ask(path, { headers: await bearer(claims) });

describe('T2 C10 first requests of a KServe client', () => {
  it('describes the server and its extensions without a token', async () => {
    const answer = await ask('/v2');
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ name: 'auricle', extensions: expect.arrayContaining(['sequence']) });
    expect((await ask('/v2/')).status).toBe(200);
  });

  it('is live, and ready while an agent serves a model', async () => {
    expect((await ask('/v2/health/live')).status).toBe(200);
    await startAgent(unique());
    const answer = await ask('/v2/health/ready');
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });

  it('a model is ready or 400, by the zones of the token', async () => {
    const name = unique();
    expect((await get(`/v2/models/${name}/ready`)).status).toBe(400);
    const agent = await startAgent(name, { zone: 'us' });
    const answer = await get(`/v2/models/${name}/ready`);
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    expect((await get(`/v2/models/${name}/ready`, { zones: ['eu'] })).status).toBe(400);
    await agent.send(agent.report({ draining: true }));
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    expect((await get(`/v2/models/${name}/ready`)).status).toBe(400);
  });

  it('a version of a model is ready if its pool knows it', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* ({ head }) {
      if (head.version === '9') {
        yield { type: 'refusal', reason: 'version_unknown', params: { model: name, version: '9' } };
        return;
      }
      yield { type: 'answer', headers: { 'content-type': 'application/json' }, bytes: 2 };
      yield { type: 'body', bytes: new TextEncoder().encode('{}') };
      yield finalOf(name);
    };
    const answers = [
      await get(`/v2/models/${name}/versions/1/ready`),
      await get(`/v2/models/${name}/versions/9/ready`),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400]);
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(['', '']);
    expect(await readError(await ask(`/v2/models/${name}/versions/1/ready`))).toMatchObject({ status: 401 });
  });

  it.each([
    ['metadata', '', 'infer'],
    ['metadata', '', 'models'],
    ['metadata', '/versions/3', 'infer'],
    ['config', '/config', 'operate'],
    ['stats', '/stats', 'operate'],
  ])('%s of a model comes from its pool (%s, scope %s)', async (task, suffix, scope) => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* () {
      yield { type: 'answer', headers: { 'content-type': 'application/json' }, bytes: 2 };
      yield { type: 'body', bytes: new TextEncoder().encode('{}') };
      yield finalOf(name);
    };
    const answer = await get(`/v2/models/${name}${suffix}`, { scope });
    expect([answer.status, await answer.json()]).toEqual([200, {}]);
    const version = suffix.startsWith('/versions') ? { version: '3' } : {};
    expect(agent.seen[0]?.head).toEqual({ v: 1, task, model: name, ...version });
  });
});

describe('T2 C10 an inference', () => {
  it('as binary tensors, both ways', async () => {
    const name = unique();
    const agent = await startAgent(name);
    const seen: Uint8Array[] = [];
    agent.script = async function* (received) {
      const body = await received.all();
      seen.push(body);
      yield* doubling(name)({ ...received, all: async () => body });
    };
    const answer = await infer(name);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
    const length = answer.headers.get('inference-header-content-length');
    const decoded = decodeInferResponse(new Uint8Array(await answer.arrayBuffer()), length);
    expect(decoded).toMatchObject({ ok: true, value: { model: name, outputs: [{ name: 'Y' }] } });
    if (decoded.ok) expect(decoded.value.outputs[0]?.bytes).toEqual(row('Y', 2, 4).bytes);
    // The tensor bytes arrive unchanged after the head that frames them.
    expect(Buffer.from(seen[0] as Uint8Array).subarray(-8)).toEqual(Buffer.from(row('X', 1, 2).bytes));
    expect(agent.seen[0]?.head).toMatchObject({ v: 1, task: 'infer', model: name });
    expect(agent.seen[0]?.head.headerLength).toMatch(/^\d+$/);
    expect(agent.seen[0]?.ticket).toMatchObject({ tenant: 'acme', class: 'default', model: name });
  });

  it('compressed: forwards content coding and accepted codings to the agent', async () => {
    const name = unique();
    const agent = await startAgent(name);
    const packed = gzipSync('{"outputs":[]}');
    agent.script = async function* (received) {
      await received.all();
      yield {
        type: 'answer',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        bytes: packed.byteLength,
      };
      yield { type: 'body', bytes: packed };
      yield finalOf(name);
    };
    const body = new Uint8Array(gzipSync('{"inputs":[]}'));
    const answer = await infer(name, { body, headers: { 'content-encoding': 'gzip', 'accept-encoding': 'gzip' } });
    expect(answer.status).toBe(200);
    expect(agent.seen[0]?.head).toMatchObject({ encoding: 'gzip', accept: 'gzip' });
    // The client may have decompressed the body: exactly once.
    expect(await answer.json()).toEqual({ outputs: [] });
  });

  it('A2: the token bounds the class, whatever the request names', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = doubling(name);
    const wish = { 'x-auricle-class': 'realtime' };
    await infer(name, { headers: wish });
    await infer(name, { headers: wish, claims: { priority: 'realtime' } });
    expect(agent.seen.map(({ ticket }) => ticket.class)).toEqual(['default', 'realtime']);
  });

  it('C4 R1 is recorded: attempt, route and end, with its audio', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'answer', headers: {}, bytes: 0 };
      yield finalOf(name, 2.5);
    };
    const tenant = `t-${unique()}`;
    await (await infer(name, { claims: { tenant, audit: 'strict' } })).text();
    const page = (await (await get(`/v2/../v1/audit/outbox?tenant=${tenant}`)).json()) as { rows: { event: object }[] };
    const events = page.rows.map(({ event }) => event).filter((event) => (event as { type: string }).type !== 'keys');
    expect(events).toMatchObject([
      { type: 'inference.attempt', tenant, action: 'infer', model: name },
      { type: 'route', agent: agent.name, outcome: 'served' },
      { type: 'inference.complete', status: 200, agent: agent.name, audioSeconds: 2.5, action: 'infer', model: name },
    ]);
  });
});

describe('A5 sequences over HTTP', () => {
  const fleet = async (name: string) => {
    const agents = [];
    for (const [n, zone] of ['eu', 'us', 'eu', 'us'].entries())
      agents.push(await startAgent(name, { zone, pool: `p-${n}` }));
    for (const agent of agents) agent.script = doubling(name);
    return agents;
  };

  it('every request of one goes to one agent; the ids are spread', async () => {
    const name = unique();
    const agents = await fleet(name);
    const used = new Map<string, Set<string>>();
    for (const id of ['a', 'b', 'c', 'd', 7, 8, 9, 10]) {
      for (let n = 0; n < 3; n += 1) {
        const before = agents.map(({ requests }) => requests);
        const form = n === 1 ? 'json' : 'binary';
        expect((await infer(name, { parameters: { sequence_id: id }, form })).status).toBe(200);
        const chosen = agents.find(({ requests }, i) => requests !== before[i]);
        used.set(String(id), (used.get(String(id)) ?? new Set()).add(chosen?.name ?? 'none'));
        expect(chosen?.seen.at(-1)?.head).toMatchObject({ sequence: String(id) });
      }
    }
    expect([...used.values()].map(({ size }) => size)).toEqual(Array(8).fill(1));
    expect(new Set([...used.values()].flatMap((names) => [...names])).size).toBeGreaterThan(1);
  });

  it('finds the id in a compressed message, or in a header', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = doubling(name);
    const json = '{"inputs":[],"parameters":{"sequence_id":"abc"}}';
    await infer(name, { body: new Uint8Array(gzipSync(json)), headers: { 'content-encoding': 'gzip' } });
    await infer(name, { headers: { 'x-auricle-sequence': 'def' } });
    await infer(name, { parameters: { sequence_id: 0 } });
    expect(agent.seen.map(({ head }) => head.sequence)).toEqual(['abc', 'def', undefined]);
  });

  it('C4 belongs to the subject and session of its caller, which the agent cannot read', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = doubling(name);
    const parameters = { sequence_id: 1 };
    const session = { 'x-auricle-session': 'process 1' };
    await infer(name, { parameters, claims: { sub: 'alice' } });
    await infer(name, { parameters, claims: { sub: 'alice', jti: 'another token' } });
    await infer(name, { parameters, claims: { sub: 'alice' }, headers: session });
    await infer(name, { parameters, claims: { sub: 'bob' }, headers: session });
    await infer(name, { parameters, claims: { sub: undefined, jti: 'one' } });
    await infer(name, { parameters, claims: { sub: undefined, jti: 'two' } });
    const [first, again, named, bob, one, two] = agent.seen.map(({ head }) => head);
    expect([first?.session, again]).toEqual([undefined, first]);
    expect(named).toMatchObject({ caller: first?.caller, session: expect.stringMatching(/^[\w-]{43}$/) });
    expect(new Set([first, bob, one, two].map((head) => head?.caller)).size).toBe(4);
    expect(bob?.session).not.toBe(named?.session);
    expect(JSON.stringify([first, named, bob])).not.toMatch(/alice|bob|process 1/);
  });

  it('a sequence unknown to the first agent goes to the second, else Triton’s error', async () => {
    const name = unique();
    const [one, other] = [await startAgent(name), await startAgent(name, { zone: 'us', pool: 'eks-test' })];
    const unknown = { type: 'refusal', reason: 'sequence_unknown', params: { sequence: 7, model: name } } as const;
    let asked = 0;
    one.script = other.script = async function* (received) {
      const body = await received.all();
      asked += 1;
      if (asked === 1) yield unknown;
      else yield* doubling(name)({ ...received, all: async () => body });
    };
    expect((await infer(name, { parameters: { sequence_id: 7 } })).status).toBe(200);
    expect([one.requests, other.requests]).toEqual([1, 1]);
    one.script = other.script = async function* () {
      yield unknown;
    };
    expect(await readError(await infer(name, { parameters: { sequence_id: 7 } }))).toEqual({
      status: 400,
      error: `inference request for sequence 7 to model '${name}' must specify the START flag on the first request of the sequence`,
    });
  });
});

describe('C6 another agent takes over', () => {
  it('when the first is cut off in the middle of a small answer', async () => {
    const name = unique();
    const [one, other] = [await startAgent(name), await startAgent(name, { pool: 'eks-test', zone: 'us' })];
    let asked = 0;
    one.script = other.script = async function* (received) {
      const body = await received.all();
      asked += 1;
      if (asked > 1) return yield* doubling(name)({ ...received, all: async () => body });
      yield { type: 'answer', headers: { 'content-type': 'text/wrong' }, bytes: 10 };
      yield { type: 'body', bytes: new Uint8Array(5) };
      yield 'cut';
    };
    const answer = await infer(name);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(10);
  });
});

describe('answers of every size', () => {
  const large = new Uint8Array(ANSWER_BUFFERED_BYTES * 3).map((_, at) => at % 251);

  it('a large one arrives whole', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'answer', headers: { 'content-type': 'application/octet-stream' }, bytes: large.byteLength };
      for (let at = 0; at < large.byteLength; at += 60_000) {
        yield { type: 'body', bytes: large.subarray(at, at + 60_000) };
        yield { type: 'keepalive' };
      }
      yield finalOf(name);
    };
    const answer = await infer(name);
    expect(Buffer.compare(Buffer.from(await answer.arrayBuffer()), Buffer.from(large))).toBe(0);
  });

  it.each(['cut', 'short', 'refused'] as const)('a large one with a bad end (%s) does not look whole', async (how) => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'answer', headers: {}, bytes: large.byteLength };
      for (let at = 0; at < large.byteLength - 60_000; at += 60_000)
        yield { type: 'body', bytes: large.subarray(at, at + 60_000) };
      if (how === 'cut') yield 'cut';
      else if (how === 'short') yield finalOf(name);
      else yield { type: 'refusal', reason: 'engine_failed' };
    };
    const answer = await infer(name);
    expect(answer.status).toBe(200);
    await expect(answer.arrayBuffer()).rejects.toThrow();
  });

  it('nothing at all', async () => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* () {
      yield { type: 'answer', headers: { 'content-type': 'application/json' }, bytes: 0 };
      yield finalOf(name);
    };
    expect(await (await infer(name)).text()).toBe('');
  });

  it.each([
    ['a body before the answer', [{ type: 'body', bytes: join([large.subarray(0, 9)]) }, finalOf('x')]],
    ['an end without an answer', [finalOf('x')]],
    ['fewer bytes than were said', [{ type: 'answer', headers: {}, bytes: 9 }, finalOf('x')]],
  ] as const)('%s is a lost pool', async (_, events) => {
    const name = unique();
    const agent = await startAgent(name);
    agent.script = async function* () {
      yield* events;
    };
    expect(await readError(await infer(name))).toMatchObject({ status: 502 });
  });
});
