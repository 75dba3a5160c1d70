import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { headerLengthField } from '../../../shared/kserve/body.ts';
import { type Datatype, datatypes } from '../../../shared/kserve/datatype.ts';
import {
  decodeInferRequest,
  decodeRawRequest,
  encodeInferRequest,
  TENSORS_MAX,
} from '../../../shared/kserve/infer-request.ts';
import {
  createInferResponseReader,
  decodeInferResponse,
  encodeInferResponse,
} from '../../../shared/kserve/infer-response.ts';
import { PARAMETERS_MAX } from '../../../shared/kserve/parameters.ts';
import { JSON_ARRAYS_MAX, JSON_LEVELS_MAX, JSON_MEMBERS_MAX } from '../../../shared/kserve/parse-json.ts';
import { elementCount, type Tensor } from '../../../shared/kserve/tensor.ts';
import { DIMENSIONS_MAX } from '../../../shared/kserve/tensor-message.ts';
import { bytesTensor, fixedDatatypes, joinChunks } from './made.ts';

const content = (datatype: Datatype, shape: number[]): fc.Arbitrary<Uint8Array> => {
  const length = (elementCount(shape) ?? 0) * datatypes[datatype].bytes;
  return fc.uint8Array({ minLength: length, maxLength: length, ...(datatype === 'BOOL' && { max: 1 }) });
};
const fixedTensor = fc
  .record({ datatype: fc.constantFrom(...fixedDatatypes), shape: fc.array(fc.nat(3), { maxLength: 3 }) })
  .chain(({ datatype, shape }) => content(datatype, shape).map((bytes) => ({ datatype, shape, bytes })));
const textTensor = fc.array(fc.string(), { maxLength: 4 }).map((texts) => bytesTensor('', texts));
const tensors: fc.Arbitrary<Tensor[]> = fc
  .array(fc.oneof(fixedTensor, textTensor), { minLength: 1, maxLength: 4 })
  .map((list) => list.map((tensor, index) => ({ ...tensor, name: `tensor ${index}` })));

const plain = (list: readonly Tensor[]) => list.map((tensor) => ({ ...tensor, bytes: [...tensor.bytes] }));
const utf8 = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** An array that counts reads of its elements. */
function counted(length: number, element: unknown) {
  const seen = { reads: 0 };
  const list = new Proxy(
    Array.from({ length }, () => element),
    {
      get(target, key, self) {
        if (typeof key === 'string' && /^\d+$/.test(key)) seen.reads++;
        return Reflect.get(target, key, self);
      },
    },
  );
  return { list, seen };
}

describe('R1 counts a caller’s message before reading its content', () => {
  const one = { name: 'x', datatype: 'FP32', shape: [1], data: [1] };
  afterEach(() => vi.restoreAllMocks());

  /** Decodes a message as if its JSON were `message`, whatever the bytes. */
  function readAs(message: unknown): string {
    vi.spyOn(JSON, 'parse').mockReturnValueOnce(message);
    const read = decodeInferRequest(utf8({}));
    return read.ok ? '' : read.refusal.reason;
  }

  it.each([
    ['outputs', TENSORS_MAX, (list: unknown) => ({ inputs: [one], outputs: list })],
    ['inputs', TENSORS_MAX, (list: unknown) => ({ inputs: list })],
    ['dimensions', DIMENSIONS_MAX, (list: unknown) => ({ inputs: [{ ...one, shape: list }] })],
  ])('%s', (what, most, message) => {
    const { list, seen } = counted(200_000, { name: 'y' });
    expect(readAs(message(list))).toContain(`over ${most} ${what}`);
    expect(seen.reads).toBe(0);
  });

  it('parameters of a request, of a tensor and of an output', () => {
    const names = Array.from({ length: PARAMETERS_MAX + 1 }, (_, index) => `p${index}`);
    const { list, seen } = counted(2, 'value');
    const many = Object.fromEntries(names.map((name) => [name, 1]));
    for (const parameters of [many, { ...many, p0: list }]) {
      for (const message of [
        { inputs: [one], parameters },
        { inputs: [{ ...one, parameters }] },
        { inputs: [one], outputs: [{ name: 'y', parameters }] },
      ]) {
        expect(readAs(message)).toContain(`over ${PARAMETERS_MAX} parameters`);
      }
    }
    expect(seen.reads).toBe(0);
    const { p0, ...most } = many;
    expect(decodeInferRequest(utf8({ inputs: [one], parameters: most })).ok).toBe(true);
  });

  it('data, which is looked at once, when it becomes bytes', () => {
    const { list, seen } = counted(100, 1);
    expect(readAs({ inputs: [{ ...one, shape: [100], data: list }] })).toBe('');
    expect(seen.reads).toBe(100);
  });

  it('bounds JSON levels, arrays and names before parsing, ignoring brackets in texts', () => {
    const parse = vi.spyOn(JSON, 'parse');
    const depth = JSON_LEVELS_MAX;
    const nested = (levels: number) => new TextEncoder().encode(`${'['.repeat(levels)}${']'.repeat(levels)}`);
    const deep = decodeInferRequest(nested(depth + 1));
    expect(deep).toMatchObject({ refusal: { reason: expect.stringContaining(`over ${depth} levels`) } });
    expect(parse).not.toHaveBeenCalled();
    decodeInferRequest(nested(depth));
    expect(parse).toHaveBeenCalledOnce();
    for (const [most, text, what] of [
      [JSON_MEMBERS_MAX, '{},', 'objects and members'],
      [JSON_MEMBERS_MAX / 2, '{"a":0},', 'objects and members'],
      [JSON_ARRAYS_MAX - 1, '[],', 'arrays'],
    ] as const) {
      parse.mockClear();
      const many = decodeInferRequest(new TextEncoder().encode(`[${text.repeat(most)}${text.slice(0, -1)}]`));
      expect(many.ok ? '' : many.refusal.reason).toContain(`${what}`);
      expect(parse).not.toHaveBeenCalled();
      decodeInferRequest(new TextEncoder().encode(`[${text.repeat(most - 1)}${text.slice(0, -1)}]`));
      expect(parse).toHaveBeenCalledOnce();
    }
    const texts = bytesTensor('x', ['['.repeat(depth + 1), `\\"${'{:'.repeat(JSON_MEMBERS_MAX)}`]);
    const body = encodeInferRequest({ inputs: [texts] }, 'json');
    expect(body.ok && decodeInferRequest(joinChunks(body.value)).ok).toBe(true);
  });
});

describe('inference request', () => {
  const wishes = fc.record(
    {
      id: fc.string(),
      parameters: fc.record(
        {
          sequence_id: fc.oneof(fc.string(), fc.nat()),
          sequence_start: fc.boolean(),
          priority: fc.nat(),
          timeout: fc.nat(),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  );

  it('comes back as it went, in binary', () => {
    fc.assert(
      fc.property(tensors, wishes, (inputs, given) => {
        const body = encodeInferRequest({ ...given, inputs, outputs: ['y'] });
        if (!body.ok) throw new Error(body.refusal.reason);
        const read = decodeInferRequest(joinChunks(body.value), body.value.headers[headerLengthField]);
        if (!read.ok) throw new Error(read.refusal.reason);
        expect(plain(read.value.inputs)).toEqual(plain(inputs));
        expect(read.value.parameters).toEqual(given.parameters ?? {});
        expect(read.value.id).toBe(given.id);
        expect(read.value.outputs).toEqual([{ name: 'y', binary: true }]);
      }),
    );
  });

  it('is a value or a reason for any bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array(),
        fc.option(fc.oneof(fc.string(), fc.nat(40).map(String)), { nil: undefined }),
        (body, length) => {
          for (const read of [decodeInferRequest(body, length), decodeInferResponse(body, length)]) {
            if (!read.ok) expect(read.refusal.reason).not.toBe('');
          }
        },
      ),
    );
  });

  it('is a value or a reason for any JSON', () => {
    const odd = fc.record(
      { inputs: fc.anything(), outputs: fc.anything(), parameters: fc.anything() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(odd, (message) => {
        const text = JSON.stringify(message, (_, value) => (typeof value === 'bigint' ? Number(value) : value)) ?? '';
        const read = decodeInferRequest(new TextEncoder().encode(text));
        if (!read.ok) expect(read.refusal.reason).not.toBe('');
      }),
    );
  });

  it('any cut of a binary body is noticed', () => {
    fc.assert(
      fc.property(tensors, fc.double({ min: 0, max: 0.999, noNaN: true }), (inputs, part) => {
        const body = encodeInferRequest({ inputs });
        if (!body.ok) throw new Error(body.refusal.reason);
        const whole = joinChunks(body.value);
        const read = decodeInferRequest(
          whole.subarray(0, Math.floor(whole.byteLength * part)),
          body.value.headers[headerLengthField],
        );
        expect(read.ok).toBe(false);
      }),
    );
  });

  const one = { name: 'x', datatype: 'FP32', shape: [1], data: [1] };
  it.each([
    ['no inputs', { inputs: [] }, 'inputs'],
    ['a name twice', { inputs: [one, one] }, 'given twice'],
    ['no data', { inputs: [{ ...one, data: undefined }] }, 'neither data nor'],
    ['data and binary', { inputs: [{ ...one, parameters: { binary_data_size: 4 } }] }, 'both data and'],
    ['shared memory', { inputs: [{ ...one, parameters: { shared_memory_region: 'r' } }] }, 'shared memory'],
    [
      'classification',
      { inputs: [one], outputs: [{ name: 'y', parameters: { classification: 3 } }] },
      'classification',
    ],
    ['an output twice', { inputs: [one], outputs: [{ name: 'y' }, { name: 'y' }] }, 'requested twice'],
    ['a negative timeout', { inputs: [one], parameters: { timeout: -1 } }, 'timeout'],
    ['a fractional priority', { inputs: [one], parameters: { priority: 0.5 } }, 'priority'],
    ['an unknown type', { inputs: [{ ...one, datatype: 'FP8' }] }, 'datatype'],
    [
      'a negative size',
      { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], parameters: { binary_data_size: -4 } }] },
      'binary_data_size',
    ],
  ])('refuses %s', (_, message, named) => {
    const read = decodeInferRequest(utf8(message));
    expect(read.ok ? '' : read.refusal.reason).toContain(named);
  });

  it('refuses bytes after the last tensor', () => {
    const head = utf8({ inputs: [one] });
    const read = decodeInferRequest(new Uint8Array([...head, 1]), String(head.byteLength));
    expect(read).toEqual({ ok: false, refusal: { reason: '1 bytes follow the last binary tensor' } });
  });

  it('ignores unknown members, and shows no values in its errors', () => {
    expect(decodeInferRequest(utf8({ inputs: [{ ...one, note: 1 }], more: true })).ok).toBe(true);
    const read = decodeInferRequest(utf8({ inputs: [{ ...one, datatype: 'secret words' }] }));
    expect(read.ok ? '' : read.refusal.reason).not.toContain('secret');
  });

  it('takes a bare body for a model with one input', () => {
    const raw = decodeRawRequest(new Uint8Array(12), { name: 'x', datatype: 'FP32', shape: [1, -1] });
    expect(raw.ok && raw.value.inputs[0]?.shape).toEqual([1, 3]);
    const text = decodeRawRequest(Uint8Array.of(104, 105), { name: 'x', datatype: 'BYTES', shape: [1] });
    expect(text.ok && [...text.value.inputs[0]!.bytes]).toEqual([2, 0, 0, 0, 104, 105]);
    expect(decodeRawRequest(new Uint8Array(13), { name: 'x', datatype: 'FP32', shape: [-1] }).ok).toBe(false);
    expect(decodeRawRequest(new Uint8Array(12), { name: 'x', datatype: 'FP32', shape: [-1, -1] }).ok).toBe(false);
    expect(decodeRawRequest(new Uint8Array(8), { name: 'x', datatype: 'FP32', shape: [3] }).ok).toBe(false);
    expect(decodeRawRequest(new Uint8Array(0), { name: 'x', datatype: 'FP32', shape: [0, -1] }).ok).toBe(false);
  });
});

describe('inference response', () => {
  it('survives a round trip, each output in its requested form', () => {
    fc.assert(
      fc.property(tensors, fc.func(fc.boolean()), (outputs, choose) => {
        // 64-bit integers are written exactly, but reading them back as JSON is refused beyond 2^53.
        const wide = (name: string) => outputs.some((one) => one.name === name && one.datatype.endsWith('INT64'));
        const isBinary = (name: string) => wide(name) || choose(name);
        const body = encodeInferResponse({ id: 'a', model: 'm', version: '2', outputs }, isBinary);
        // Some values have no JSON form; then the answer is a reason, and asking for binary always helps.
        if (!body.ok) {
          expect(encodeInferResponse({ model: 'm', version: '2', outputs }, () => true).ok).toBe(true);
          return;
        }
        const read = decodeInferResponse(joinChunks(body.value), body.value.headers[headerLengthField]);
        if (!read.ok) throw new Error(read.refusal.reason);
        expect({ ...read.value, outputs: plain(read.value.outputs) }).toEqual({
          id: 'a',
          model: 'm',
          version: '2',
          outputs: plain(outputs),
        });
      }),
    );
  });

  it('is parsed the same after a similar message, also when truncated', () => {
    const answers = fc.array(fc.record({ outputs: tensors, again: fc.nat(2), cut: fc.nat(3) }), { maxLength: 4 });
    fc.assert(
      fc.property(answers, (list) => {
        const read = createInferResponseReader();
        for (const { outputs, again, cut } of list) {
          const body = encodeInferResponse({ model: 'm', version: '2', outputs }, () => true);
          if (!body.ok) throw new Error(body.refusal.reason);
          const bytes = joinChunks(body.value);
          const length = body.value.headers[headerLengthField];
          for (let time = 0; time <= again; time++) {
            const given = bytes.subarray(0, bytes.length - (time === 1 ? cut : 0));
            expect(read(given, length)).toEqual(decodeInferResponse(given, length));
          }
        }
      }),
    );
  });

  it('is not written with a tensor of wrong bytes', () => {
    const outputs: Tensor[] = [{ name: 'y', datatype: 'FP32', shape: [2], bytes: new Uint8Array(4) }];
    expect(encodeInferResponse({ model: 'm', version: '1', outputs }, () => true).ok).toBe(false);
  });
});
