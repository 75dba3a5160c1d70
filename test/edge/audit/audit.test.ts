import { describe, expect, it } from 'vitest';
import { readOutbox } from '../../../edge/audit/read-outbox.ts';
import { late, type Runtime, realRuntime } from '../../../edge/clock.ts';
import { ANONYMOUS_DENIALS_PER_S } from '../../../edge/ledger/record.ts';
import { BODY_IDLE_MS } from '../../../edge/limits.ts';
import { AUDIT_WAIT_DEFAULT_MS } from '../../../edge/settings-schema.ts';
import { transcribe } from '../../../edge/transcribe/transcribe.ts';
import { type AuditEvent, auditEvent } from '../../../shared/audit/event.ts';
import { ordinary } from '../../fake/agent.ts';
import { ask, passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { makeContext, makeUpload } from '../../fake/request-context.ts';
import { makeToken } from '../authority.ts';

const unique = () => crypto.randomUUID().slice(0, 8);
const operator = async () => ({ authorization: `Bearer ${await makeToken({ tenant: 'ops', scope: 'operate' })}` });

async function readEvents(tenant: string): Promise<AuditEvent[]> {
  const answer = await ask(`/v1/audit/outbox?tenant=${encodeURIComponent(tenant)}`, { headers: await operator() });
  expect(answer.status).toBe(200);
  const { rows } = (await answer.json()) as { rows: { event: unknown }[] };
  return rows.map(({ event }) => {
    const read = auditEvent.parse(event);
    // The schema has every member that was written.
    expect(read).toEqual(event);
    return read;
  });
}

const never = () => new Promise<never>(() => {});
/** Timers expire at once. */
const impatient: Runtime = {
  ...realRuntime,
  after: (ms) =>
    ms === AUDIT_WAIT_DEFAULT_MS ? { rings: Promise.resolve(late), cancel: () => {} } : realRuntime.after(ms),
};

describe('A1 A2 audit record of a request', () => {
  it('attempt, set-up of keys, route, complete, in this order', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    const agent = await startAgent(model);
    const token = await makeToken({ tenant, audit: 'strict' });
    const answer = await upload({
      token,
      fields: [
        ['model', model],
        ['language', 'en'],
      ],
      headers: { 'x-auricle-class': 'batch' },
    });
    const request = answer.headers.get('x-request-id');
    await answer.text();
    const events = await readEvents(tenant);
    const who = { tenant, request, producer: 'edge' };
    expect(events).toMatchObject([
      {
        ...who,
        type: 'inference.attempt',
        action: 'transcribe',
        subject: expect.stringMatching(/^c1:[0-9a-f]{64}$/),
        class: 'batch',
      },
      { type: 'keys', action: 'setup', agent: agent.name, suite: 5 },
      { ...who, type: 'route', attempt: 1, agent: agent.name, pool: agent.pool, zone: 'eu', outcome: 'served' },
      { ...who, type: 'inference.complete', status: 200, agent: agent.name, audioSeconds: 8.47, model },
    ]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(events.at(-1)).toHaveProperty('language', 'en');
    expect(events.at(-1)).toHaveProperty('bytes', expect.any(Number));
  });

  it('each attempt of a request that two agents tried', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    const [one, other] = [await startAgent(model), await startAgent(model, { pool: 'eks-test' })];
    one.plain = other.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    await upload({ token: await makeToken({ tenant, audit: 'strict' }), fields: [['model', model]] });
    const routes = (await readEvents(tenant)).filter(({ type }) => type === 'route');
    expect(routes).toMatchObject([
      { attempt: 1, outcome: 'pool_busy' },
      { attempt: 2, outcome: 'pool_busy' },
    ]);
  });

  it('a denial of a known tenant goes to its own gate', async () => {
    const tenant = `t-${unique()}`;
    const answer = await upload({ token: await makeToken({ tenant, scope: 'models' }), fields: [['model', 'm']] });
    expect(answer.status).toBe(403);
    const events = await readEvents(tenant);
    expect(events).toMatchObject([{ type: 'inference.denied', tenant, reason: 'scope_missing', action: 'transcribe' }]);
  });

  it('a flood of unknown callers is counted, not written one by one', async () => {
    passTime(10_000);
    const flood = ANONYMOUS_DENIALS_PER_S + 25;
    const before = (await readEvents('@anonymous')).length;
    for (let n = 0; n < flood; n += 1) await (await ask('/v1/models')).text();
    passTime(2_000);
    await (await ask('/v1/models')).text();
    const events = (await readEvents('@anonymous')).slice(before);
    expect(events.length).toBeLessThan(flood);
    const suppressed = events.reduce(
      (sum, event) => sum + (event.type === 'inference.denied' ? (event.suppressed ?? 0) : 0),
      0,
    );
    expect(events.length + suppressed).toBe(flood + 1);
  });

  it('R14 holds no token, subject, audio or transcript', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const sub = `holder-${unique()}`;
    const token = await makeToken({ tenant, audit: 'strict', sub });
    const denied = await upload({ token: await makeToken({ tenant, scope: 'models', sub }) });
    expect(denied.status).toBe(403);
    const marker = 'MARKER-OF-THE-AUDIO';
    const answer = await upload({
      token,
      fields: [
        ['model', model],
        ['prompt', 'a secret prompt'],
      ],
      file: new TextEncoder().encode(marker),
    });
    expect(await answer.text()).toContain('hello there');
    const text = JSON.stringify(await readEvents(tenant));
    for (const content of [token, sub, token.split('.')[2] as string, marker, 'hello', 'kenobi', 'secret']) {
      expect(text).not.toContain(content);
    }
  });
});

describe('A1 a strict tenant is not served unrecorded', () => {
  it('refused when the gate does not answer; a lease granted late is returned', async () => {
    const model = `model-${unique()}`;
    const agent = await startAgent(model);
    let answerLate: (value: { ok: true; value: undefined }) => void = () => {};
    const settled: unknown[][] = [];
    const gate = {
      take: () =>
        new Promise<{ ok: true; value: undefined }>((resolve) => {
          answerLate = resolve;
        }),
      settle: async (...given: unknown[]) => void settled.push(given),
      record: async () => {},
    };
    const { context, settled: done } = makeContext(gate, impatient);
    const answer = await transcribe(await makeUpload(model, { audit: 'strict' }), context);
    expect(await readRefusal(answer)).toMatchObject({ status: 503, code: 'audit_unavailable' });
    expect(agent.requests).toBe(0);
    answerLate({ ok: true, value: undefined });
    await done();
    expect(settled).toMatchObject([
      [context.id, 0, [{ type: 'inference.complete', status: 503, reason: 'audit_unavailable' }]],
    ]);
  });

  it('A21 an outbox is hidden while its reads cannot be recorded', async () => {
    const gate = {
      take: async () => ({ ok: true as const, value: undefined }),
      settle: async () => {},
      record: () => Promise.reject(new Error('gone')),
    };
    const { context, settled } = makeContext(gate, realRuntime);
    const request = new Request('http://edge.test/v1/audit/outbox?tenant=ops', { headers: await operator() });
    expect(await readRefusal(await readOutbox(request, context))).toMatchObject({
      status: 503,
      code: 'audit_unavailable',
    });
    await settled();
  });

  it('refused when the gate fails', async () => {
    const model = `model-${unique()}`;
    await startAgent(model);
    const settled: unknown[][] = [];
    const gate = {
      take: () => Promise.reject(new Error('gone')),
      record: async () => {},
      settle: async (...given: unknown[]) => void settled.push(given),
    };
    const { context, settled: done } = makeContext(gate, realRuntime);
    const answer = await transcribe(await makeUpload(model, { audit: 'strict', tenant: `t-${unique()}` }), context);
    expect(await readRefusal(answer)).toMatchObject({ status: 503, code: 'audit_unavailable' });
    await done();
    // It may have happened before it failed: the place comes back with the record of the denial.
    expect(settled).toEqual([[context.id, 0, []]]);
  });

  it.each(['false', 'true'])('the result is withheld when its end cannot be recorded (stream=%s)', async (stream) => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    const agent = await startAgent(model);
    agent.script = async function* (received) {
      for await (const event of ordinary(received)) {
        yield event !== 'cut' && event.type === 'form'
          ? { ...event, fields: { ...event.fields, stream: [stream] } }
          : event;
      }
    };
    const gate = {
      take: async () => ({ ok: true, value: undefined }) as const,
      settle: () => Promise.reject(new Error('gone')),
    };
    const { context, settled } = makeContext(gate, realRuntime);
    const answer = await transcribe(await makeUpload(model, { tenant, audit: 'strict' }), context);
    const text = await answer.text();
    expect(text).toContain('audit_unavailable');
    expect(text).not.toContain('transcript.text.done');
    if (stream === 'false') expect(answer.status).toBe(503);
    await settled();

    // The next request takes the end along: what the caller got, the place given back, the seconds booked.
    const heard: unknown[][] = [];
    const mended = makeContext({ take: gate.take, settle: async (...given) => void heard.push(given) }, realRuntime);
    await (await transcribe(await makeUpload(model, { tenant, audit: 'strict' }), mended.context)).text();
    await mended.settled();
    expect(heard.map(([id]) => id)).toEqual([context.id, mended.context.id]);
    const [, seconds, events] = heard[0] as [string, number, AuditEvent[]];
    expect(seconds).toBe(8.47);
    expect(events.filter(({ type }) => type === 'inference.complete')).toMatchObject([
      { status: 503, reason: 'audit_unavailable' },
    ]);
  });

  it('serves a buffered tenant; undelivered events join the next request', async () => {
    const [tenant, model] = [`t-${unique()}`, `model-${unique()}`];
    await startAgent(model);
    const broken = { take: never, settle: never, record: never };
    const first = makeContext(broken, impatient);
    const answer = await transcribe(await makeUpload(model, { tenant }), first.context);
    expect(await answer.json()).toMatchObject({ text: 'hello there general kenobi' });
    await first.settled();

    const received: AuditEvent[] = [];
    const mended = {
      take: async () => ({ ok: true, value: undefined }) as const,
      settle: async (_id: string, _seconds: number, events: readonly AuditEvent[]) => void received.push(...events),
      record: async (events: readonly AuditEvent[]) => void received.push(...events),
    };
    const second = makeContext(mended, realRuntime);
    await (await transcribe(await makeUpload(model, { tenant }), second.context)).text();
    await second.settled();
    const requests = received.map((event) => ('request' in event ? `${event.type} ${event.request}` : event.type));
    expect(requests).toContain(`inference.attempt ${first.context.id}`);
    expect(requests).toContain(`inference.complete ${first.context.id}`);
    expect(requests).toContain(`inference.complete ${second.context.id}`);
  });
});

describe('C6 a slow caller', () => {
  it('is refused with client_slow, without advice to retry', async () => {
    const model = `model-${unique()}`;
    const agent = await startAgent(model);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'keepalive' };
    };
    const slow: Runtime = {
      ...realRuntime,
      after: (ms) => (ms === BODY_IDLE_MS ? { rings: Promise.resolve(late), cancel: () => {} } : realRuntime.after(ms)),
    };
    const { context, settled } = makeContext(
      { take: async () => ({ ok: true, value: undefined }) as const, settle: async () => {} },
      slow,
    );
    const request = new Request('http://edge.test/v1/audio/transcriptions', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await makeToken()}`,
        'content-type': 'multipart/form-data; boundary=X',
        'x-auricle-model': model,
      },
      body: new ReadableStream({ pull: never }),
      ...({ duplex: 'half' } as object),
    });
    const answer = await transcribe(request, context);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(await readRefusal(answer)).toEqual({
      status: 408,
      code: 'client_slow',
      message: 'No bytes of the body arrived for 20 seconds.',
    });
    await settled();
  });
});
