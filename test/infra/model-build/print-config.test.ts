import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { printText } from '../../../infra/pool/models/config/print-text.ts';
import {
  enums,
  fieldShape,
  isEnum,
  isMessage,
  type MessageName,
  type ModelConfig,
  messages,
  oneofs,
} from '../../../infra/pool/models/config/schema.ts';
import { emptyMessage } from '../../../infra/pool/models/config/value.ts';
import { runs } from '../../seeds.ts';

/** No field tells zero from its negative. */
const unsigned = (value: number): number => (value === 0 ? 0 : value);

const scalars: Record<string, fc.Arbitrary<unknown>> = {
  string: fc.string({ unit: 'grapheme', maxLength: 12 }),
  bool: fc.boolean(),
  int32: fc.integer(),
  int64: fc.maxSafeInteger(),
  uint32: fc.nat(),
  uint64: fc.maxSafeNat(),
  float: fc.double().map(unsigned),
  double: fc.double().map(unsigned),
};

/** A random message of the table, nested up to a depth. */
function messageOf(name: MessageName, depth: number): fc.Arbitrary<object> {
  const fields = Object.keys(messages[name]).map((field): [string, fc.Arbitrary<unknown>] => {
    const shape = fieldShape(name, field);
    if (!shape) throw new Error(field);
    const value = fieldOf(shape.type, depth - 1);
    if (value === undefined)
      return [field, fc.constant(shape.form === 'repeated' ? [] : shape.form === 'map' ? {} : undefined)];
    if (shape.form === 'repeated') return [field, fc.array(value, { maxLength: 2 })];
    if (shape.form === 'map')
      return [field, fc.dictionary(keyOf(shape.key), value, { maxKeys: 2, noNullPrototype: true })];
    return [field, shape.optional ? fc.option(value, { nil: undefined }) : value];
  });
  return fc.record(Object.fromEntries(fields)).map((made) => oneOfEach(name, made as Record<string, unknown>));
}

const keyOf = (key: string | undefined) =>
  key === 'uint64' ? fc.nat().map(String) : fc.string({ maxLength: 6 }).filter((text) => text !== '__proto__');

function fieldOf(type: string, depth: number): fc.Arbitrary<unknown> | undefined {
  if (isMessage(type)) return depth <= 0 ? undefined : messageOf(type, depth);
  if (isEnum(type)) return fc.constantFrom(...enums[type]);
  return scalars[type];
}

/** Keeps the first given member of each group; omitted members are as in an empty message. */
function oneOfEach(name: MessageName, made: Record<string, unknown>): object {
  const given = (oneofs[name] ?? []).filter((field) => made[field] !== undefined);
  for (const field of given.slice(1)) delete made[field];
  for (const [field, value] of Object.entries(made)) if (value === undefined) delete made[field];
  return { ...emptyMessage(name), ...made };
}

it('M3 any configuration survives printing and parsing', () => {
  fc.assert(
    fc.property(messageOf('ModelConfig', 3), (config) => {
      const text = printText(config as ModelConfig);
      const read = parseText(text);
      if (!read.ok) throw new Error(`${read.refusal.reason}\n${text}`);
      expect(read.value).toEqual(config);
      expect(printText(read.value)).toBe(text);
    }),
    { numRuns: runs(100, 2_000) },
  );
});
