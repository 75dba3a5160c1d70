import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { outcomeOfRefusal } from '../../../../edge/routing/memory.ts';
import { INFER_TIMEOUT_MS } from '../../../../infra/pool/agent/kserve/infer.ts';
import { INFER_BODY_BYTES } from '../../../../shared/kserve/limits.ts';
import { fp32Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Reason } from '../../../../shared/refusal.ts';
import { classes } from '../../../../shared/tenant/claims.ts';
import { type KserveEngine, startKserveEngine } from '../../../fake/kserve-engine.ts';
import { type Bench, patience, startBench } from '../start-agent.ts';
import { callerOf, plain, type Request, row, valuesOf } from './call.ts';

let bench: Bench;
let engine: KserveEngine;
const models = ['adder', 'two', 'none', 'whole'].map((name) => ({
  description: {
    name,
    task: 'infer' as const,
    languages: ['zxx'],
    revision: `sha256:${'0'.repeat(64)}`,
    precision: 'fp32' as const,
    stage: 'full' as const,
    loaded: 1,
  },
}));
beforeAll(async () => {
  engine = await startKserveEngine();
  Object.assign(engine.configs, {
    two: { dynamic_batching: { priority_levels: '2' } },
    none: {},
    whole: { ensemble_scheduling: { step: ['none', 'adder', 'two'].map((model_name) => ({ model_name })) } },
  });
  bench = await startBench({ AURICLE_ENGINE_URL: engine.url }, { keepaliveMs: 5, models });
});
afterAll(async () => {
  await bench.stop();
  await engine.stop();
});
beforeEach(() => {
  engine.next = [];
  engine.outputs = [row('Y', 2, 4)];
  engine.seen.length = 0;
});

const { ask, infer } = callerOf(() => bench, 'adder');

describe('T2 a request for tensors', () => {
  it('binary both ways, with the id of the caller, and what was used', async () => {
    const got = await infer({ id: 'r-1' });
    expect(got.types).toEqual(['ready', 'answer', 'body', 'final']);
    expect(got.whole).toBe(true);
    expect(valuesOf(got)).toMatchObject({ id: 'r-1', model: 'adder', version: '1', outputs: [{ name: 'Y' }] });
    expect(got.last).toMatchObject({ type: 'final', model: 'adder', durationSeconds: 0 });
    expect(plain(engine.seen[0]?.request.inputs[0])).toEqual(plain(row('X', 1, 2)));
  });

  it('JSON both ways', async () => {
    const got = await infer({}, { form: 'json' });
    expect(JSON.parse(got.body.toString())).toMatchObject({ outputs: [{ name: 'Y', data: [2, 4] }] });
    expect(got.answer?.headers).toEqual({ 'content-type': 'application/json' });
    expect(got.answer?.bytes).toBe(got.body.length);
  });

  it('packed both ways', async () => {
    engine.outputs = [row('Y', ...Array(1_000).fill(1))];
    const body = gzipSync(JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 1], data: [1] }] }));
    const got = await ask({ body, head: { encoding: 'gzip', accept: 'gzip' } });
    expect(got.answer?.headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(got.body).toString())).toMatchObject({ outputs: [{ shape: [1, 1_000] }] });
  });

  it('raw: the body is the one input', async () => {
    const got = await ask({ head: { headerLength: '0' }, body: row('X', 1, 2, 3, 4).bytes });
    expect(engine.seen[0]?.request.inputs).toMatchObject([{ name: 'X', shape: [1, 4] }]);
    expect(valuesOf(got).outputs).toHaveLength(1);
  });

  it('C10 T2 refuses a raw body for a version that the model does not have', async () => {
    const got = await ask({ head: { headerLength: '0', version: '9' }, body: row('X', 1, 2, 3, 4).bytes });
    expect(got.refusal).toMatchObject({ reason: 'version_unknown', params: { model: 'adder', version: '9' } });
  });

  it('sends the version', async () => {
    await infer({}, { head: { version: '3' } });
    expect(engine.seen[0]?.path).toBe('adder/versions/3/infer');
  });

  it('an answer larger than a record', async () => {
    engine.outputs = [row('Y', ...Array.from({ length: 50_000 }, (_, n) => n))];
    const got = await infer();
    expect(got.types.filter((type) => type === 'body').length).toBeGreaterThan(1);
    expect(plain(valuesOf(got).outputs[0])).toEqual(plain(engine.outputs[0]));
  });

  it('A2: the agent sets priority and time; a caller may only ask for less', async () => {
    const seen = async (parameters: Request['parameters'] = {}, claims = {}) => {
      await infer({ parameters }, { claims });
      return engine.seen.at(-1)?.request.parameters;
    };
    expect(await seen({}, { class: 'realtime' })).toMatchObject({ priority: 1 });
    expect(await seen({ priority: 1, timeout: 999_999_999_999 })).toMatchObject({ priority: 3 });
    expect((await seen({ timeout: 999_999_999_999 }))?.timeout).toBeLessThanOrEqual(INFER_TIMEOUT_MS * 1_000);
    expect(await seen({ priority: 4, timeout: 5_000_000 })).toMatchObject({ priority: 4, timeout: 5_000_000 });
    expect(await seen({ priority: 4 }, { class: 'realtime' })).toMatchObject({ priority: 4 });
    expect(await seen({ temperature: 0.5 })).toMatchObject({ temperature: 0.5 });
  });

  it.each(classes)('A2: a level that the model lacks raises no request (%s)', async (name) => {
    const own = classes.indexOf(name) + 1;
    for (const priority of [0, 1, own, 4, 5, 9, Number.MAX_SAFE_INTEGER]) {
      await infer({ parameters: { priority } }, { claims: { class: name } });
      const level = Math.min(Math.max(own, priority), 4);
      expect(engine.seen.at(-1)?.request.parameters.priority, String(priority)).toBe(level);
    }
    const body = Buffer.from('{"inputs":[],"parameters":{"priority":9007199254740992}}');
    expect((await ask({ body })).refusal).toMatchObject({ reason: 'tensors_invalid' });
  });

  it.each([
    { model: 'two', levels: [1, 1, 2, 2], last: 2 },
    { model: 'whole', levels: [1, 1, 2, 2], last: 2 },
    { model: 'none', levels: [undefined, undefined, undefined, undefined], last: undefined },
  ])(
    'A2 A18: classes become levels that the model, or each step of it, has ($model)',
    async ({ model, levels, last }) => {
      const caller = callerOf(() => bench, model);
      const seen = async (name: string, priority = 0) => {
        await caller.infer({ parameters: { priority } }, { claims: { class: name, model } });
        return engine.seen.at(-1)?.request.parameters.priority;
      };
      const told = [];
      for (const name of classes) told.push(await seen(name));
      expect(told).toEqual(levels);
      expect(await seen('realtime', 9)).toBe(last);
    },
  );
});

describe('T2 refused requests', () => {
  const tensor = { name: 'X', datatype: 'FP32', shape: [1, 1], data: [1] };
  const rows: [string, unknown, RegExp][] = [
    ['no JSON', 'nonsense', /failed to parse/],
    ['no inputs', {}, /inputs/],
    ['a shape that is not filled', { inputs: [{ ...tensor, shape: [1, 2] }] }, /X/],
    ['shared memory', { inputs: [{ ...tensor, parameters: { shared_memory_region: 'r' } }] }, /shared memory/],
    ['classification', { inputs: [tensor], outputs: [{ name: 'Y', parameters: { classification: 1 } }] }, /classif/],
    ['headers', { inputs: [tensor], parameters: { headers: 'x' } }, /'headers' is reserved/],
    ['a parameter of Triton', { inputs: [tensor], parameters: { triton_x: 1 } }, /'triton_x' is reserved/],
    ['a long id', { id: 'x'.repeat(300), inputs: [tensor] }, /id has over/],
    ['too many inputs', { inputs: Array.from({ length: 65 }, (_, n) => ({ ...tensor, name: `X${n}` })) }, /inputs/],
    [
      'too many parameters',
      { inputs: [tensor], parameters: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`p${n}`, n])) },
      /parameters/,
    ],
    ['a sequence nobody was routed by', { inputs: [tensor], parameters: { sequence_id: 4 } }, /x-auricle-sequence/],
  ];
  it.each(rows)('%s', async (_, message, pattern) => {
    const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
    const { refusal } = await ask({ body });
    expect(refusal).toMatchObject({ reason: 'tensors_invalid', params: { rule: expect.stringMatching(pattern) } });
    expect(engine.seen).toEqual([]);
  });

  it('a sequence other than the one routed by, also none', async () => {
    const conflict = { reason: 'hints_conflict', params: { field: 'sequence_id' } };
    const wrong = await infer({ parameters: { sequence_id: 4, sequence_start: true } }, { head: { sequence: '5' } });
    expect(wrong.refusal).toMatchObject(conflict);
    expect((await infer({}, { head: { sequence: '5' } })).refusal).toMatchObject(conflict);
  });

  it.each(['gzip', 'deflate'] as const)('a body that is not %s', async (encoding) => {
    const { refusal } = await ask({ body: Buffer.from('{"inputs":[]}'), head: { encoding } });
    expect(refusal).toMatchObject({ reason: 'tensors_invalid' });
  });

  it('a body that unpacks to more than is allowed, whatever the network carried', async () => {
    const body = gzipSync(new Uint8Array(INFER_BODY_BYTES + 1));
    const { refusal } = await ask({ body, head: { encoding: 'gzip' } });
    expect(refusal).toMatchObject({ reason: 'tensors_too_large' });
  });

  it('JSON beyond its bound; as binary the same tensors are taken', async () => {
    const values = new Float32Array(1_200_000).fill(0.5);
    const inputs = [fp32Tensor('X', values, [1, values.length])];
    expect((await infer({ inputs }, { form: 'json' })).refusal).toMatchObject({ reason: 'tensors_invalid' });
    expect((await infer({ inputs })).refusal).toBeUndefined();
    engine.outputs = [fp32Tensor('Y', values, [1, values.length])];
    expect((await infer({}, { form: 'json' })).refusal).toMatchObject({ params: { rule: /ask for binary data/ } });
  });

  it.each([
    [400, 'unexpected shape', { reason: 'tensors_invalid', params: { rule: 'unexpected shape' } }],
    [501, 'no sequences here', { reason: 'tensors_unsupported', params: { rule: 'no sequences here' } }],
    [503, 'queue full', { reason: 'pool_busy' }],
    // The request named no timeout: the queue itself is too slow.
    [503, 'Request timeout expired', { reason: 'pool_busy' }],
    [500, 'a traceback with secrets', { reason: 'engine_failed' }],
    [404, 'not found', { reason: 'misdirected' }],
  ])('an engine answer of %i', async (status, error, refusal) => {
    engine.next = [{ status, error }];
    const got = await infer();
    expect(got.refusal).toMatchObject(refusal);
    expect(JSON.stringify(got.refusal)).not.toContain('secrets');
    expect(engine.seen).toHaveLength(1);
  });

  it.each([
    ['its own timeout', 1, 'Request timeout expired', { reason: 'timeout_passed', params: { microseconds: 1 } }],
    [
      'its own timeout, of a sequence',
      1,
      'timeout of the corresponding sequence has been expired',
      { reason: 'timeout_passed' },
    ],
    ['the timeout of the model, before its own', 3_600_000_000, 'Request timeout expired', { reason: 'pool_busy' }],
    ['a full queue', 1, 'Exceeds maximum queue size', { reason: 'pool_busy' }],
  ])('503 because of %s', async (_, timeout, error, refusal) => {
    engine.next = [{ status: 503, error }];
    expect((await infer({ parameters: { timeout } })).refusal).toMatchObject(refusal);
    expect(bench.lines.at(-1)).toContain(`"${refusal.reason}"`);
    // Neither the agent nor its pool is said to be at fault.
    expect(outcomeOfRefusal(refusal.reason as Reason)).toBe('neutral');
  });

  it('a non-finite answer as JSON names the tensor and the binary form', async () => {
    for (const [value, what] of [
      [Number.NaN, 'NaN'],
      [Number.NEGATIVE_INFINITY, 'infinite number'],
    ] as const) {
      engine.outputs = [row('Y', 1, value)];
      const { refusal } = await infer({}, { form: 'json' });
      const rule = `the model's answer: tensor 'Y' holds a ${what}, which JSON cannot carry; ask for binary data`;
      expect(refusal).toMatchObject({ reason: 'tensors_invalid', params: { rule } });
      const { outputs } = valuesOf(await infer());
      expect(plain(outputs[0])).toBe(plain(engine.outputs[0]));
    }
  });

  it('a version that is not there, and an engine that hangs up', async () => {
    const answered = async (error: string) => {
      engine.next = [{ status: 404, error: `Request for unknown model: 'adder' ${error}` }];
      return (await infer({}, { head: { version: '9' } })).refusal?.reason;
    };
    expect(await answered('version 9 is not found')).toBe('version_unknown');
    // An engine that has unloaded the model, or has started without it: another agent may have that version.
    expect(await answered('has no available versions')).toBe('misdirected');
    expect(await answered('is not found')).toBe('misdirected');
    engine.next = ['drop'];
    expect((await infer()).refusal).toMatchObject({ reason: 'engine_failed' });
  });

  it('a model that is not served, and an unknown task', async () => {
    expect(await ask({ head: { model: 'other' }, claims: { model: 'other' } })).toMatchObject({ status: 421 });
    expect((await ask({ head: { task: 'load' as never } })).refusal).toMatchObject({ reason: 'seal_broken' });
    expect((await ask({ head: { model: 'other' }, claims: { model: 'adder' } })).refusal).toMatchObject({
      reason: 'ticket_invalid',
    });
  });

  it('R14 no line of the log has anything of it', async () => {
    engine.next = [{ status: 400, error: 'your tensor was 4242' }];
    await infer({ id: 'caller-4242' });
    expect(bench.lines.join('\n')).not.toContain('4242');
    expect(bench.lines.at(-1)).toContain('"tensors_invalid"');
  });
});

describe('T2 descriptions of a model', () => {
  it.each([
    ['metadata', { name: 'adder' }],
    ['config', { sequence_batching: {} }],
    ['stats', { model_stats: [] }],
  ] as const)('%s, as the engine says it', async (task, value) => {
    const got = await ask({ head: { task } });
    expect(JSON.parse(got.body.toString())).toMatchObject(value);
    expect(got.types).toEqual(['ready', 'answer', 'body', 'final']);
  });

  it('a version that is not there', async () => {
    expect((await ask({ head: { task: 'metadata', version: '9' } })).refusal).toMatchObject({
      reason: 'version_unknown',
      params: { model: 'adder', version: '9' },
    });
  });
});

describe('T2 generation', () => {
  const generate = (message: unknown, task: 'generate' | 'generate_stream' = 'generate_stream') =>
    ask({ head: { task }, body: Buffer.from(JSON.stringify(message)) });
  const hello = { text_input: 'hello', parameters: { max_tokens: 4 } };

  it('one JSON', async () => {
    engine.generate = (body, response) => response.end(JSON.stringify({ text_output: JSON.parse(body).text_input }));
    expect(JSON.parse((await generate(hello, 'generate')).body.toString())).toEqual({ text_output: 'hello' });
  });

  it('frames, however the network cut them', async () => {
    engine.generate = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const piece of ['data: {"a"', ':1}\n', '\ndata: {"b":2}\r\n\r\n']) response.write(piece);
      response.end();
    };
    const got = await generate(hello);
    expect(got.body.toString()).toBe('data: {"a":1}\n\ndata: {"b":2}\n\n');
    expect(got.answer).toMatchObject({ headers: { 'content-type': 'text/event-stream' } });
    expect(got.answer?.bytes).toBeUndefined();
  });

  it.each([
    ['in the first frame', ['data: {"error":"boom"}\n\n'], 0],
    ['in a later frame', ['data: {"a":1}\n\n', 'data: {"error":"boom"}\n\n'], 1],
    ['inside a frame', ['data: {"a":1}\n\n', 'data: {"b"'], 1],
    ['before any frame', [], 0],
  ])('a failure %s is none of them', async (_, pieces, bodies) => {
    engine.generate = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      for (const piece of pieces) response.write(piece);
      response.end();
    };
    const got = await generate(hello);
    expect(got.refusal).toMatchObject({ reason: 'engine_failed' });
    expect(got.types.filter((type) => type === 'body')).toHaveLength(bodies);
    expect(got.body.toString()).not.toContain('boom');
  });

  it('an engine that refuses', async () => {
    engine.generate = (_, response) => response.writeHead(400).end('{"error":"no input text_input"}');
    expect((await generate(hello)).refusal).toMatchObject({ params: { rule: 'no input text_input' } });
  });

  it.each([
    [{ sequence_id: 4 }],
    [{ priority: 1 }],
    [{ triton_final: true }],
    [{ parameters: { timeout: 4 } }],
    [{ parameters: 7 }],
    [[]],
  ])('%j is not the caller’s to say', async (message) => {
    expect((await generate(message)).refusal).toMatchObject({ reason: 'tensors_invalid' });
  });

  it('C6 a caller that goes away ends it at the engine', async () => {
    let closed = false;
    const gone = new AbortController();
    engine.generate = (_, response) => {
      response.on('close', () => {
        closed = true;
      });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"a":1}\n\n');
      gone.abort();
    };
    await ask({ head: { task: 'generate_stream' }, body: Buffer.from('{}'), signal: gone.signal }).catch(() => {});
    await expect.poll(() => closed, patience).toBe(true);
  });
});

describe('A5 sequences of callers', () => {
  const step = (id: string | number, flags: 'start' | 'end' | 'both' | '' = '', claims = {}) =>
    infer(
      {
        parameters: {
          sequence_id: id,
          ...(['start', 'both'].includes(flags) && { sequence_start: true }),
          ...(['end', 'both'].includes(flags) && { sequence_end: true }),
        },
      },
      { claims },
    );
  const told = () => engine.seen.map(({ request: { parameters } }) => parameters);

  it('START and END reach the engine under our id; the caller reads its own', async () => {
    const first = await step(7, 'start');
    await step(7);
    await step(7, 'end');
    const ids = told().map(({ sequence_id }) => sequence_id);
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).not.toBe(7);
    expect(typeof ids[0]).toBe('number');
    expect(told().map(({ sequence_start, sequence_end }) => [sequence_start, sequence_end])).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
    expect(valuesOf(first).parameters).toEqual({ sequence_id: 7 });
    expect((await step(7)).refusal).toMatchObject({
      reason: 'sequence_unknown',
      params: { sequence: 7, model: 'adder' },
    });
  });

  it('C4 two tenants never share one, nor do a number and its digits', async () => {
    await step('7', 'start', { tenant: 'one' });
    await step('7', 'start', { tenant: 'two' });
    await step(7, 'start', { tenant: 'one' });
    expect(new Set(told().map(({ sequence_id }) => sequence_id)).size).toBe(3);
    expect((await step('7', '', { tenant: 'three' })).refusal).toMatchObject({ reason: 'sequence_unknown' });
    for (const tenant of ['one', 'two']) expect((await step('7', 'end', { tenant })).refusal).toBeUndefined();
    await step(7, 'end', { tenant: 'one' });
  });

  it('C4 two subjects with one correlation id compute with a state each', async () => {
    const of = (caller: string, session?: string) => (sequence_start: boolean) =>
      infer(
        { parameters: { sequence_id: 1, ...(sequence_start && { sequence_start }) } },
        { head: { caller, ...(session !== undefined && { session }) } },
      );
    const callers = [of('alice'), of('bob'), of('alice', 'a process')];
    for (const one of callers) expect((await one(true)).refusal).toBeUndefined();
    for (const one of callers) expect((await one(false)).refusal).toBeUndefined();
    const ids = told().map(({ sequence_id }) => sequence_id);
    expect(new Set(ids.slice(0, 3)).size).toBe(3);
    expect(ids.slice(3)).toEqual(ids.slice(0, 3));
    expect((await of('carol')(false)).refusal).toMatchObject({ reason: 'sequence_unknown' });
    expect((await of('alice')(true)).refusal).toMatchObject({ reason: 'sequence_open' });
    expect((await of('alice')(false)).refusal).toBeDefined();
  });

  it('a vanished caller: the engine gets END, the next step must START', async () => {
    engine.idleMicros = 20_000;
    await step('gone', 'start');
    await expect.poll(() => told().at(-1), patience).toMatchObject({ sequence_start: false, sequence_end: true });
    expect(new Set(told().map(({ sequence_id }) => sequence_id)).size).toBe(1);
    expect(engine.seen.at(-1)?.request.inputs).toMatchObject([{ name: 'X', shape: [1, 2] }]);
    expect(plain(engine.seen.at(-1)?.request.inputs[0])).toEqual(plain(row('X', 0, 0)));
    expect((await step('gone')).refusal).toMatchObject({ reason: 'sequence_unknown' });
    engine.idleMicros = 1_000_000;
  });

  it('C6 a sequence lost by the engine answers as Triton does; a new START works', async () => {
    await step('lost', 'start');
    engine.next = [{ status: 400, error: 'inference request for x must specify the START flag on the first request' }];
    expect((await step('lost')).refusal).toMatchObject({ reason: 'sequence_unknown', params: { sequence: 'lost' } });
    expect((await step('lost', 'both')).refusal).toBeUndefined();
  });

  it('the agent ends what is open when it stops', async () => {
    const own = await startBench({ AURICLE_ENGINE_URL: engine.url }, { models });
    const before = bench;
    bench = own;
    await step('open', 'start');
    bench = before;
    await own.stop();
    expect(told().at(-1)).toMatchObject({ sequence_end: true });
  });
});
