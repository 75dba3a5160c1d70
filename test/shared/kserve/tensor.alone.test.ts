import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BYTES_ELEMENTS_MAX, decodeBytesElements, encodeBytesElements } from '../../../shared/kserve/bytes-elements.ts';
import { datatypes, fromConfigName } from '../../../shared/kserve/datatype.ts';
import { encodeInferRequest } from '../../../shared/kserve/infer-request.ts';
import { bytesFromJson, jsonFromBytes } from '../../../shared/kserve/json-data.ts';
import {
  checkTensor,
  elementCount,
  fp32Tensor,
  int32Tensor,
  readBytes,
  readFp32,
  readInt32,
} from '../../../shared/kserve/tensor.ts';
import { bytesTensor, fixedDatatypes } from './made.ts';

describe('BYTES elements', () => {
  afterEach(() => vi.restoreAllMocks());

  it('come back as they went', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), (elements) => {
        const decoded = decodeBytesElements(encodeBytesElements(elements));
        expect(decoded.ok && decoded.value.map((one) => [...one])).toEqual(elements.map((one) => [...one]));
      }),
    );
  });

  it('never throw for any bytes, and never read past the end', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const decoded = decodeBytesElements(bytes);
        if (decoded.ok) expect([...encodeBytesElements(decoded.value)]).toEqual([...bytes]);
        else expect(decoded.refusal.reason).toMatch(/^element \d+/);
      }),
    );
  });

  it('R1 are counted without views, and only when they are read', () => {
    const windows = vi.spyOn(Uint8Array.prototype, 'subarray');
    const looks = vi.spyOn(DataView.prototype, 'getUint32');
    const tensor = bytesTensor(
      'x',
      Array.from({ length: 1_000 }, () => new Uint8Array(0)),
    );
    expect(checkTensor(tensor)).toMatchObject({ ok: true });
    expect(looks).toHaveBeenCalledTimes(1_000);
    expect(encodeInferRequest({ inputs: [tensor] })).toMatchObject({ ok: true });
    expect(looks).toHaveBeenCalledTimes(1_000);
    expect(windows).not.toHaveBeenCalled();
  });

  it('R1 are bounded, before one of them is looked at', () => {
    const most = BYTES_ELEMENTS_MAX;
    const looks = vi.spyOn(DataView.prototype, 'getUint32');
    const many = { name: 'x', datatype: 'BYTES' as const, shape: [1, most + 1], bytes: new Uint8Array(4 * (most + 1)) };
    const texts = vi.spyOn(TextEncoder.prototype, 'encode');
    for (const read of [checkTensor(many), bytesFromJson('x', 'BYTES', Array(most + 1).fill(''))]) {
      expect(read).toEqual({ ok: false, refusal: { reason: `tensor 'x': over ${most} elements` } });
    }
    expect(looks).not.toHaveBeenCalled();
    expect(texts).not.toHaveBeenCalled();
    expect(checkTensor({ ...many, shape: [most], bytes: many.bytes.subarray(4) }).ok).toBe(true);
    expect(bytesFromJson('x', 'BYTES', Array(most).fill('')).ok).toBe(true);
  });

  it('say which element is cut off', () => {
    const whole = encodeBytesElements([Uint8Array.of(1), Uint8Array.of(2, 3)]);
    const cut = decodeBytesElements(whole.subarray(0, -1));
    expect(cut).toEqual({ ok: false, refusal: { reason: 'element 1 claims 2 bytes, 1 are left' } });
  });
});

describe('a tensor', () => {
  it('is right for exactly the bytes of shape and type', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...fixedDatatypes),
        fc.array(fc.nat(5), { maxLength: 4 }),
        fc.integer({ min: -8, max: 8 }),
        (datatype, shape, off) => {
          const right = elementCount(shape)! * datatypes[datatype].bytes;
          const bytes = new Uint8Array(Math.max(0, right + off));
          expect(checkTensor({ name: 'x', datatype, shape, bytes }).ok).toBe(bytes.byteLength === right);
        },
      ),
    );
  });

  it('refuses shapes that are no shapes', () => {
    for (const shape of [[-1], [1.5], [Number.NaN], [2 ** 30, 2 ** 30]]) {
      expect(checkTensor({ name: 'x', datatype: 'INT8', shape, bytes: new Uint8Array(0) }).ok, String(shape)).toBe(
        false,
      );
    }
  });

  it('is read back as its array, at any alignment', () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true })), fc.nat(7), (values, shift) => {
        const { bytes, ...head } = fp32Tensor('x', Float32Array.from(values));
        const moved = new Uint8Array(bytes.byteLength + shift);
        moved.set(bytes, shift);
        const read = readFp32({ ...head, bytes: moved.subarray(shift) });
        expect(read.ok && [...read.value]).toEqual([...Float32Array.from(values)]);
      }),
    );
    const numbers = readInt32(int32Tensor('x', Int32Array.of(-1, 7)));
    expect(numbers.ok && [...numbers.value]).toEqual([-1, 7]);
    const texts = readBytes(bytesTensor('x', ['ä', Uint8Array.of(255)]));
    expect(texts.ok && texts.value.map((one) => [...one])).toEqual([[0xc3, 0xa4], [255]]);
  });

  it('BOOL holds 0 and 1 only', () => {
    const tensor = { name: 'x', datatype: 'BOOL' as const, shape: [2] };
    expect(checkTensor({ ...tensor, bytes: Uint8Array.of(0, 1) }).ok).toBe(true);
    expect(checkTensor({ ...tensor, bytes: Uint8Array.of(0, 2) }).ok).toBe(false);
  });

  it('is refused under another type', () => {
    expect(readFp32(int32Tensor('x', Int32Array.of(1)))).toMatchObject({ ok: false });
  });

  it('types have the names that configurations use', () => {
    for (const [name, { config }] of Object.entries(datatypes)) expect(fromConfigName(config)).toBe(name);
    expect(fromConfigName('TYPE_INVALID')).toBeUndefined();
  });
});

describe('JSON data', () => {
  const ranges = {
    INT8: [-128, 127],
    UINT16: [0, 65_535],
    INT32: [-(2 ** 31), 2 ** 31 - 1],
    INT64: [-(2 ** 53) + 1, 2 ** 53 - 1],
  } as const;

  for (const [datatype, [min, max]] of Object.entries(ranges)) {
    it(`carries ${datatype} exactly, and nothing outside it`, () => {
      const type = datatype as keyof typeof ranges;
      fc.assert(
        fc.property(fc.array(fc.maxSafeInteger()), (values) => {
          const bytes = bytesFromJson('x', type, values);
          const fits = values.every((value) => value >= min && value <= max);
          expect(bytes.ok).toBe(fits);
          if (!bytes.ok) return;
          const text = jsonFromBytes({ name: 'x', datatype: type, shape: [values.length], bytes: bytes.value });
          expect(text.ok && JSON.parse(text.value)).toEqual(values);
        }),
      );
    });
  }

  it('flattens nesting and refuses bottomless nesting', () => {
    const flat = bytesFromJson('x', 'UINT8', [[1, [2]], 3]);
    expect(flat.ok && [...flat.value]).toEqual([1, 2, 3]);
    let deep: unknown[] = [1];
    for (let level = 0; level < 100; level++) deep = [deep];
    expect(bytesFromJson('x', 'UINT8', deep)).toMatchObject({ ok: false });
  });

  it('refuses values that JSON cannot represent', () => {
    for (const datatype of ['FP16', 'BF16'] as const) {
      expect(bytesFromJson('x', datatype, [1])).toMatchObject({ ok: false });
      expect(jsonFromBytes({ name: 'x', datatype, shape: [1], bytes: new Uint8Array(2) })).toMatchObject({ ok: false });
    }
    expect(jsonFromBytes(fp32Tensor('x', Float32Array.of(Infinity)))).toMatchObject({ ok: false });
    expect(jsonFromBytes(bytesTensor('x', [Uint8Array.of(0xff)]))).toMatchObject({ ok: false });
    expect(bytesFromJson('x', 'INT64', [2 ** 53])).toMatchObject({ ok: false });
    expect(bytesFromJson('x', 'BOOL', [1])).toMatchObject({ ok: false });
  });

  it('writes 64-bit integers digit by digit', () => {
    const bytes = new Uint8Array(BigInt64Array.of(9_007_199_254_740_993n).buffer);
    const text = jsonFromBytes({ name: 'x', datatype: 'INT64', shape: [1], bytes });
    expect(text).toEqual({ ok: true, value: '[9007199254740993]' });
  });
});
