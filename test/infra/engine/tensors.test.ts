import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assemble as assembleRead } from '../../../infra/pool/engine/batch/assemble.ts';
import { split } from '../../../infra/pool/engine/batch/split.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';
import { fp32Tensor, readBytes, readFp32, readInt32, type Tensor } from '../../../shared/kserve/tensor.ts';
import { bytesTensor } from '../../shared/kserve/made.ts';

function configOf(text: string) {
  const parsed = parseText(text);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return config.value;
}
const fp32 = (name: string, values: number[], shape: number[]) => fp32Tensor(name, Float32Array.from(values), shape);
function assemble(...given: Parameters<typeof assembleRead>): Tensor[] {
  const read = assembleRead(...given);
  if (!read.ok) throw new Error(read.refusal.reason);
  return read.value;
}
const values = (tensor: Tensor | undefined) => {
  const read = tensor?.datatype === 'INT32' ? readInt32(tensor) : readFp32(tensor!);
  return read.ok ? [...read.value] : read.refusal.reason;
};

describe('A1: inputs of a batch', () => {
  const batched = configOf(
    'max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }',
  );

  it('lie one after the other', () => {
    const [joined] = assemble(batched, [[fp32('X', [1, 2], [1, 2])], [fp32('X', [3, 4, 5, 6], [2, 2])]]);
    expect(joined?.shape).toEqual([3, 2]);
    expect(values(joined)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('have memory of their own', () => {
    const given = fp32('X', [1, 2], [1, 2]);
    const [joined] = assemble(batched, [[given]]);
    expect(joined?.bytes.buffer).not.toBe(given.bytes.buffer);
    expect(joined?.bytes.byteOffset).toBe(0);
  });

  const kinds: [string, string, number[], number[]][] = [
    ['BATCH_ELEMENT_COUNT', 'TYPE_INT32', [2], [3, 4]],
    ['BATCH_ACCUMULATED_ELEMENT_COUNT', 'TYPE_INT32', [2], [3, 7]],
    ['BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO', 'TYPE_FP32', [3], [0, 3, 7]],
    ['BATCH_MAX_ELEMENT_COUNT_AS_SHAPE', 'TYPE_FP32', [4], [0, 0, 0, 0]],
    ['BATCH_ITEM_SHAPE', 'TYPE_INT32', [2, 1], [3, 4]],
    ['BATCH_ITEM_SHAPE_FLATTEN', 'TYPE_INT32', [2], [3, 4]],
  ];
  it.each(kinds)('ragged: %s describes the requests', (kind, type, shape, expected) => {
    const config = configOf(`max_batch_size: 8
      input { name: "X" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
      batch_input { kind: ${kind} target_name: "T" data_type: ${type} source_input: "X" }`);
    const [flat, derived] = assemble(config, [[fp32('X', [1, 2, 3], [1, 3])], [fp32('X', [4, 5, 6, 7], [1, 4])]]);
    expect(flat).toMatchObject({ name: 'X', shape: [7] });
    expect(values(flat)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(derived).toMatchObject({ name: 'T', shape });
    expect(values(derived)).toEqual(expected);
  });

  it('ragged: offsets that their type would round are a fault', () => {
    const config = configOf(`max_batch_size: 8
      input { name: "X" data_type: TYPE_UINT8 dims: -1 allow_ragged_batch: true } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
      batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "T" data_type: TYPE_FP32 source_input: "X" }`);
    const half = { name: 'X', datatype: 'UINT8' as const, shape: [1, 2 ** 23 + 1], bytes: new Uint8Array(2 ** 23 + 1) };
    expect(assembleRead(config, [[half]]).ok).toBe(true);
    expect(assembleRead(config, [[half], [half]])).toMatchObject({ ok: false });
  });

  it('are reshaped by the configuration, free dimensions in order', () => {
    const config =
      configOf(`max_batch_size: 2 input { name: "X" data_type: TYPE_FP32 dims: [ -1, 2 ] reshape { shape: [ 1, -1, 2 ] } }
      output { name: "Y" data_type: TYPE_FP32 dims: [ 2, -1 ] reshape { shape: [ -1, 2 ] } }`);
    const [joined] = assemble(config, [[fp32('X', [1, 2, 3, 4], [1, 2, 2])]]);
    expect(joined?.shape).toEqual([1, 1, 2, 2]);
    const cut = split(config, [fp32('Y', [1, 2], [1, 1, 2])], [{ inputs: [], size: 1 }]);
    expect(cut.ok && cut.value[0]?.[0]?.shape).toEqual([1, 2, 1]);
  });
});

describe('A1: outputs of a batch', () => {
  const config = configOf(
    'max_batch_size: 64 input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }',
  );

  it('return to their requests at any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 }),
        fc.nat(4),
        (sizes, width) => {
          let next = 0;
          const requests = sizes.map((size) => {
            const own = Array.from({ length: size * width }, () => next++);
            return { size, own, inputs: [fp32('X', own, [size, width])] };
          });
          const [joined] = assemble(
            config,
            requests.map(({ inputs }) => inputs),
          );
          const cut = split(config, [{ ...joined!, name: 'Y' }], requests);
          if (!cut.ok) throw new Error(cut.refusal.reason);
          expect(cut.value.map(([piece]) => values(piece))).toEqual(requests.map(({ own }) => own));
          expect(cut.value.map(([piece]) => piece?.shape)).toEqual(sizes.map((size) => [size, width]));
        },
      ),
    );
  });

  it('text tensors are cut between elements', () => {
    const text = configOf(
      'max_batch_size: 8 input { name: "X" data_type: TYPE_STRING dims: -1 } output { name: "Y" data_type: TYPE_STRING dims: -1 }',
    );
    const cut = split(
      text,
      [bytesTensor('Y', ['a', '', 'ccc', 'd'], [2, 2])],
      [
        { inputs: [], size: 1 },
        { inputs: [], size: 1 },
      ],
    );
    if (!cut.ok) throw new Error(cut.refusal.reason);
    const texts = cut.value.map(([piece]) => {
      const read = readBytes(piece!);
      return read.ok ? read.value.map((one) => new TextDecoder().decode(one)) : [];
    });
    expect(texts).toEqual([
      ['a', ''],
      ['ccc', 'd'],
    ]);
  });

  it('are dealt out in the shapes of an input (BATCH_SCATTER_WITH_INPUT_SHAPE)', () => {
    const scatter =
      configOf(`max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
      output { name: "Y" data_type: TYPE_FP32 dims: -1 } batch_output { target_name: "Y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }`);
    const shares = [
      [1, 2],
      [1, 3],
    ].map((shape) => ({ inputs: [fp32('X', new Array(shape[1]).fill(0), shape)], size: 1 }));
    const cut = split(scatter, [fp32('Y', [1, 2, 3, 4, 5], [5])], shares);
    expect(cut.ok && cut.value.map(([piece]) => [piece?.shape, values(piece)])).toEqual([
      [
        [1, 2],
        [1, 2],
      ],
      [
        [1, 3],
        [3, 4, 5],
      ],
    ]);
  });

  it('that break the configuration are a fault, never someone else’s data', () => {
    const one = [{ inputs: [], size: 2 }];
    expect(split(config, [fp32('Y', [1], [1, 1])], one)).toMatchObject({ ok: false });
    expect(split(config, [fp32('Y', [1, 2], [2])], one)).toMatchObject({ ok: false });
    expect(split(config, [fp32('Z', [1, 2], [2, 1])], one)).toMatchObject({ ok: false });
  });
});
