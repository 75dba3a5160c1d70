import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import {
  enums,
  type FieldShape,
  fieldShape,
  isEnum,
  isMessage,
  type Message,
  type MessageName,
  messages,
  oneofs,
  type ScalarName,
} from './schema.ts';

const ranges: Partial<Record<ScalarName, readonly [number, number]>> = {
  int32: [-0x8000_0000, 0x7fff_ffff],
  uint32: [0, 0xffff_ffff],
  int64: [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};

const zero = (type: FieldShape['type']): unknown => {
  if (isEnum(type)) return enums[type][0];
  if (type === 'string') return '';
  return type === 'bool' ? false : 0;
};

/** Returns a message with its defaults. */
export function emptyMessage<N extends MessageName>(name: N): Message<N> {
  const out: Record<string, unknown> = {};
  for (const field of Object.keys(messages[name])) {
    const shape = fieldShape(name, field);
    if (!shape || shape.optional) continue;
    out[field] = shape.form === 'repeated' ? [] : shape.form === 'map' ? {} : zero(shape.type);
  }
  return out as Message<N>;
}

/** Checks a number for a field of this type. */
export function checkNumber(type: ScalarName, value: number): Read<number> {
  const range = ranges[type];
  if (!range) return ok(value);
  if (!Number.isInteger(value)) return fault(`${value} is not a whole number`);
  if (value >= range[0] && value <= range[1]) return ok(value);
  return fault(`${value} is outside ${type}${type.endsWith('64') ? ' as far as this engine reads it (2^53 - 1)' : ''}`);
}

/** Returns an enum value by name or by its number in the .proto file. */
export function checkEnum(type: string, value: string | number): Read<string> {
  if (!isEnum(type)) return fault(`${type} is not an enum`);
  const names: readonly string[] = enums[type];
  const name = typeof value === 'number' ? names[value] : names.find((known) => known === value);
  return name === undefined ? fault(`${value} is not a value of ${type} (${names.join(', ')})`) : ok(name);
}

/** Returns another member of the same oneof that is already set, if any. */
export function rivalOf(message: MessageName, field: string, given: ReadonlySet<string>): string | undefined {
  const group = oneofs[message];
  return group?.includes(field) ? group.find((other) => other !== field && given.has(other)) : undefined;
}

export const isScalar = (type: FieldShape['type']): type is ScalarName => !isMessage(type) && !isEnum(type);
