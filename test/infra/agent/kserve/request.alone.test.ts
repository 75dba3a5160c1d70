import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { BodyBudget } from '../../../../infra/pool/agent/engine/calls/body-budget.ts';
import { engineRefusal } from '../../../../infra/pool/agent/engine/calls/engine-refusal.ts';
import { readRequest } from '../../../../infra/pool/agent/kserve/check-request.ts';
import { generate } from '../../../../infra/pool/agent/kserve/generate.ts';
import { readBody } from '../../../../infra/pool/agent/kserve/read-body.ts';
import { frames, isErrorFrame } from '../../../../infra/pool/agent/kserve/server-sent.ts';
import type { AgentRequest } from '../../../../infra/pool/agent/request/admitted-request.ts';
import { INFER_READ_MS, sendPieces } from '../../../../infra/pool/agent/request/respond.ts';
import { type CallHead, callEvent, encodeBody, readCallRecord } from '../../../../shared/kserve/call.ts';
import { encodeInferRequest, TENSORS_MAX } from '../../../../shared/kserve/infer-request.ts';
import { INFER_NAME_CHARACTERS } from '../../../../shared/kserve/limits.ts';
import { PARAMETERS_MAX } from '../../../../shared/kserve/parameters.ts';
import { JSON_LEVELS_MAX } from '../../../../shared/kserve/parse-json.ts';
import { fp32Tensor } from '../../../../shared/kserve/tensor.ts';
import { DIMENSIONS_MAX } from '../../../../shared/kserve/tensor-message.ts';
import { isReason, refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';
import { runs } from '../../../seeds.ts';

const head = (change: Partial<CallHead> = {}): CallHead => ({ v: 1, task: 'infer', model: 'm', ...change });
const describeX = async () =>
  ok({ name: 'm', platform: '', inputs: [{ name: 'X', datatype: 'FP32', shape: [-1, 4] }], outputs: [] });
const read = (body: Uint8Array, change: Partial<CallHead> = {}) => readRequest(body, head(change), describeX);

/** A seeded suite runs longer where there is time for it. */
const RUNS = runs(5_000, 100_000);

const tensor = fc.record(
  {
    name: fc.oneof(fc.constantFrom('X', 'Y'), fc.string()),
    shape: fc.oneof(fc.array(fc.integer({ min: -2, max: 5 }), { maxLength: 4 }), fc.anything()),
    datatype: fc.oneof(fc.constantFrom('FP32', 'INT64', 'BYTES', 'BOOL', 'FP16', 'BF16', 'UINT64'), fc.string()),
    data: fc.oneof(fc.array(fc.oneof(fc.double(), fc.string(), fc.boolean(), fc.array(fc.integer()))), fc.anything()),
    parameters: fc.oneof(
      fc.record({ binary_data_size: fc.oneof(fc.integer(), fc.double(), fc.string()) }, { requiredKeys: [] }),
      fc.anything(),
    ),
  },
  { requiredKeys: [] },
);
const message = fc.record(
  {
    id: fc.oneof(fc.string(), fc.anything()),
    inputs: fc.oneof(fc.array(tensor, { maxLength: 3 }), fc.anything()),
    outputs: fc.oneof(fc.array(fc.record({ name: fc.string(), parameters: fc.anything() })), fc.anything()),
    parameters: fc.oneof(
      fc.record(
        {
          sequence_id: fc.oneof(fc.integer(), fc.string(), fc.anything()),
          sequence_start: fc.oneof(fc.boolean(), fc.anything()),
          sequence_end: fc.boolean(),
          priority: fc.oneof(fc.integer(), fc.double()),
          timeout: fc.oneof(fc.nat(), fc.anything()),
          binary_data_output: fc.boolean(),
          triton_x: fc.string(),
        },
        { requiredKeys: [] },
      ),
      fc.anything(),
    ),
  },
  { requiredKeys: [] },
);
const text = message.map((value) => JSON.stringify(value) ?? 'null');

describe('T2 R1 whatever a caller sends is read or refused', () => {
  it(
    'messages that look like one, with tails and lengths of every kind',
    () =>
      fc.assert(
        fc.asyncProperty(
          text,
          fc.uint8Array({ maxLength: 40 }),
          fc.oneof(fc.nat(), fc.constant(-1)),
          async (json, tail, length) => {
            const bytes = Buffer.concat([Buffer.from(json), tail]);
            const headerLength = length === 0 ? undefined : String(length < 0 ? Buffer.byteLength(json) : length);
            const result = await read(bytes, { ...(headerLength !== undefined && { headerLength }), sequence: '3' });
            expect(result.ok || isReason(result.refusal.reason)).toBe(true);
            if (!result.ok) return;
            // An accepted request is complete: every tensor has the bytes of its shape and type, and no
            // reserved parameter.
            expect(Object.keys(result.value.parameters).some((name) => name.startsWith('triton_'))).toBe(false);
            expect(encodeInferRequest({ inputs: result.value.request.inputs }).ok).toBe(true);
          },
        ),
        { numRuns: RUNS },
      ),
    120_000,
  );

  it(
    'bytes of every kind',
    () =>
      fc.assert(
        fc.asyncProperty(
          fc.uint8Array({ maxLength: 200 }),
          fc.option(fc.string(), { nil: undefined }),
          async (bytes, length) => {
            const result = await read(bytes, length === undefined ? {} : { headerLength: length });
            if (!result.ok) expect(['tensors_invalid', 'hints_conflict']).toContain(result.refusal.reason);
          },
        ),
        { numRuns: RUNS },
      ),
    120_000,
  );

  it('a good message cut anywhere, and one with a byte changed', () => {
    const made = encodeInferRequest({ inputs: [fp32Tensor('X', Float32Array.of(1, 2, 3, 4), [1, 4])], id: 'r' });
    if (!made.ok) throw new Error(made.refusal.reason);
    const whole = Buffer.concat(made.value.chunks);
    const headerLength = made.value.headers['inference-header-content-length'] as string;
    return fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), async (at, byte) => {
        expect((await read(whole.subarray(0, at), { headerLength })).ok).toBe(false);
        const changed = Buffer.from(whole);
        changed[at] = byte;
        const result = await read(changed, { headerLength });
        if (!result.ok) expect(result.refusal.reason).toMatch(/^(tensors_invalid|hints_conflict)$/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('raw bodies', () => {
  it('fill the one input, or are refused', async () => {
    const good = await read(new Uint8Array(16), { headerLength: '0' });
    expect(good).toMatchObject({ ok: true, value: { request: { inputs: [{ name: 'X', shape: [1, 4] }] } } });
    expect(await read(new Uint8Array(15), { headerLength: '0' })).toMatchObject({
      refusal: { reason: 'tensors_invalid' },
    });
  });
});

describe('records of an answer', () => {
  it('decode as events or body pieces, and as nothing but these', () =>
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(readCallRecord(encodeBody(bytes))).toEqual({ type: 'body', bytes });
        const event = readCallRecord(bytes);
        if (event && event.type !== 'body') expect(callEvent.safeParse(event).success).toBe(true);
      }),
    ));
});

describe('the memory of bodies', () => {
  async function* records(...parts: Uint8Array[]) {
    for (const [at, plaintext] of parts.entries()) yield ok({ plaintext, final: at === parts.length - 1 });
  }

  it('is bounded over all of them, and comes back', async () => {
    const budget = new BodyBudget(100);
    const first = await readBody(records(new Uint8Array(60)), undefined, budget);
    expect(await readBody(records(new Uint8Array(30), new Uint8Array(30)), undefined, budget)).toMatchObject({
      refusal: { reason: 'pool_busy' },
    });
    expect(budget.used).toBe(60);
    if (first.ok) first.value.release();
    if (first.ok) first.value.release();
    expect(budget.used).toBe(0);
  });
});

describe('a caller that does not read', () => {
  it('is given up after its time, at whatever piece', async () => {
    vi.useFakeTimers();
    try {
      let taken = 0;
      const answer = { sendBody: () => (taken++ < 1 ? Promise.resolve() : new Promise<void>(() => {})) };
      const sent = sendPieces(answer, new Uint8Array(200_000));
      await vi.advanceTimersByTimeAsync(INFER_READ_MS - 1);
      expect(taken).toBe(2);
      await vi.advanceTimersByTimeAsync(1);
      expect(await sent).toMatchObject({ refusal: { reason: 'reader_slow' } });
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the words of an engine', () => {
  it('are one line, and Triton’s own about a sequence name the caller’s', () => {
    const body = (error: unknown) => new TextEncoder().encode(JSON.stringify({ error }));
    expect(engineRefusal({ status: 400, body: body('a\nb\u0000c') }, head())).toEqual(
      refuse('tensors_invalid', { rule: 'a b c' }, 'engine status 400'),
    );
    const start = body("sequence 81273 to model 'm' must specify the START flag on the first request");
    expect(engineRefusal({ status: 400, body: start }, head(), { sequence: 'mine' })).toMatchObject({
      params: { sequence: 'mine', model: 'm' },
    });
    expect(engineRefusal({ status: 400, body: start }, head())).toMatchObject({ reason: 'tensors_invalid' });
    expect(engineRefusal({ status: 400, body: body({ code: 1 }) }, head())).toMatchObject({
      reason: 'tensors_invalid',
    });
  });
});

describe('server-sent frames', () => {
  const collect = async (pieces: readonly Uint8Array[]) => {
    const found: string[] = [];
    async function* body() {
      yield* pieces;
    }
    for await (const frame of frames(body())) found.push(frame.ok ? frame.value : frame.refusal.reason);
    return found;
  };

  it('are the same wherever the network cuts them', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 5 }), fc.array(fc.nat(400)), async (values, cuts) => {
        const whole = Buffer.from(values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join(''));
        const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, i) => whole.subarray(at[i], end));
        expect(await collect(pieces)).toEqual(values.map((value) => `data: ${JSON.stringify(value)}`));
      }),
    ));

  it('an unterminated or overlong one is a failure', async () => {
    expect(await collect([Buffer.from('data: 1\n\ndata: 2')])).toEqual(['data: 1', 'engine_failed']);
    expect(await collect([Buffer.alloc(2 ** 20 + 1, 'x')])).toEqual(['engine_failed']);
  });

  it('an error is known in every spelling', () => {
    expect(isErrorFrame('data: {"error":"x"}')).toBe(true);
    expect(isErrorFrame('event: e\ndata:{"error":\ndata: null}')).toBe(true);
    expect(isErrorFrame('data: {"text":"error"}')).toBe(false);
    expect(isErrorFrame('data: [DONE]')).toBe(false);
  });
});

describe('R1 a request for a generation', () => {
  const [inputs, parameters] = [TENSORS_MAX, PARAMETERS_MAX];
  const named = (count: number, prefix: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 1]));

  /** Returns the refusal; `let in` when the request reaches a slot. */
  async function said(body: string) {
    async function* records() {
      yield ok({ plaintext: Buffer.from(body), final: true });
    }
    const hold = async () => no(refuse('pool_busy', undefined, 'let in'));
    const context = { calls: { budget: new BodyBudget() }, dispatcher: { hold } };
    const work = { context, records: records(), ticket: {} } as unknown as AgentRequest;
    const served = await generate(work, head({ task: 'generate' }));
    return served.ok ? undefined : (served.refusal.params?.rule ?? served.refusal.detail);
  }

  it('is bounded in its names and its levels, before anything is done with either', async () => {
    const most = { ...named(inputs - 1, 'a'), parameters: named(parameters, 'b') };
    expect(await said(JSON.stringify(most))).toBe('let in');
    expect(await said(JSON.stringify({ ...most, c: 1 }))).toBe(`over ${inputs + parameters} inputs and parameters`);
    const parse = vi.spyOn(JSON, 'parse');
    const levels = JSON_LEVELS_MAX;
    const deep = `{"text_input":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    expect(await said(deep)).toContain(`over ${levels} levels`);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });
});

describe('fields of a request (T2)', () => {
  const one = { name: 'X', datatype: 'FP32', shape: [1, 1], data: [1] };
  const dimensions = (count: number) => Array.from({ length: count }, () => 1);
  const ask = (change: object, outputs?: object[]) =>
    read(Buffer.from(JSON.stringify({ inputs: [{ ...one, ...change }], ...(outputs && { outputs }) })));

  it('is bounded: dimensions, names of tensors and of outputs', async () => {
    const [most, longest] = [DIMENSIONS_MAX, INFER_NAME_CHARACTERS];
    expect(
      (await ask({ shape: dimensions(most), name: 'n'.repeat(longest) }, [{ name: 'n'.repeat(longest) }])).ok,
    ).toBe(true);
    for (const refused of [
      await ask({ shape: dimensions(100_000) }),
      await ask({ shape: dimensions(most + 1) }),
      await ask({ name: 'n'.repeat(longest + 1) }),
      await ask({}, [{ name: 'n'.repeat(longest + 1) }]),
    ]) {
      expect(refused).toMatchObject({ ok: false, refusal: { reason: 'tensors_invalid' } });
      expect(JSON.stringify(refused).length).toBeLessThan(300);
    }
  });
});
