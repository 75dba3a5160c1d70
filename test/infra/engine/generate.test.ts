import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readGenerate } from '../../../infra/pool/engine/http/generate.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';

function modelOf(inputs: string, largest = 4) {
  const parsed = parseText(`max_batch_size: ${largest} ${inputs} output { name: "Y" data_type: TYPE_FP32 dims: 1 }`);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return { config: config.value };
}
const read = (model: ReturnType<typeof modelOf>, value: unknown) =>
  readGenerate(model, new TextEncoder().encode(JSON.stringify(value)));
const input = (dims: string, type = 'TYPE_FP32', name = 'X') =>
  `input { name: "${name}" data_type: ${type} dims: [${dims}] }`;

describe('a generate request', () => {
  it.each([
    ['1', 4, 7, [1, 1]],
    ['-1', 4, [1, 2, 3], [1, 3]],
    ['3', 4, [1, 2, 3, 4, 5, 6], [2, 3]],
    ['2, -1', 0, [1, 2, 3, 4], [2, 2]],
    ['-1, 2', 0, [1, 2, 3, 4], [2, 2]],
    ['-1, -1', 0, [1, 2, 3], [1, 3]],
    ['-1', 0, [], [0]],
  ] as [string, number, unknown, number[]][])(
    'dims [%s], batch %i: %j has the shape %j',
    (dims, largest, value, shape) => {
      const request = read(modelOf(input(dims), largest), { X: value });
      expect(request.ok && request.value.inputs[0]?.shape).toEqual(shape);
    },
  );

  it.each([
    ['too many values', input('2'), { X: [1, 2, 3] }, 'proper shape'],
    ['a nested list', input('-1'), { X: [[1]] }, 'a value or a list'],
    ['a type that JSON has no form for', input('1', 'TYPE_FP16'), { X: 1 }, 'only be sent as binary'],
    ['a null', input('1'), { X: null }, 'is not a FP32 value'],
    ['a parameter that is an object', input('1'), { X: 1, more: {} }, "parameter 'more'"],
    ['an id that is a number', input('1'), { id: 1, X: 1 }, "'id'"],
    ['parameters that are a list', input('1'), { X: 1, parameters: [] }, 'Expected JSON object'],
    ['an input in both places', input('1'), { X: 1, parameters: { X: 2 } }, 'already exists'],
    ['a model with an input of that name', input('1', 'TYPE_FP32', 'parameters'), {}, 'also given as input'],
    ['no object', input('1'), [1], 'is a JSON object'],
    ['a sequence id that is none', input('1'), { X: 1, sequence_id: -1 }, 'sequence_id'],
  ])('refuses %s', (_, inputs, value, text) => {
    const request = read(modelOf(inputs), value);
    expect(request.ok ? '' : request.refusal.reason).toContain(text);
  });

  it('any input is a request or a refusal', () => {
    const model = modelOf(`${input('-1')} ${input('2', 'TYPE_STRING', 'T')}`);
    const member = fc.oneof(fc.constantFrom('X', 'T', 'id', 'parameters', '__proto__', 'sequence_id'), fc.string());
    const message = fc.oneof(fc.jsonValue(), fc.dictionary(member, fc.jsonValue()));
    fc.assert(
      fc.property(
        fc.oneof(
          message.map((value) => Buffer.from(JSON.stringify(value))),
          fc.uint8Array(),
        ),
        (body) => {
          const request = readGenerate(model, body);
          if (!request.ok) expect(request.refusal.reason).not.toBe('');
        },
      ),
      { numRuns: 2000 },
    );
  });
});
