import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import { type FieldShape, fieldShape, isEnum, isMessage, type MessageName, type ModelConfig } from './schema.ts';
import { checkEnum, checkNumber, emptyMessage, isScalar, rivalOf } from './value.ts';

/**
 * Parses a configuration in JSON (the `config` of a load request), by the same table and rules as the file.
 * 64-bit integers may be strings, as protobuf's own JSON writes them.
 */
export function parseJson(text: string): Read<ModelConfig> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fault('the configuration is not JSON');
  }
  // Clients edit a configuration that the engine returned, so the engine's extra member is accepted.
  if (isObject(value)) delete value.not_honoured;
  const config = readMessage('ModelConfig', value, 'config');
  return config.ok ? ok(config.value as ModelConfig) : config;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readMessage(message: MessageName, value: unknown, place: string): Read<object> {
  if (!isObject(value)) return fault(`${place} must be an object`);
  const out: Record<string, unknown> = emptyMessage(message);
  const given = new Set<string>();
  for (const [field, item] of Object.entries(value)) {
    const shape = fieldShape(message, field);
    if (!shape) return fault(`${place}: ${message} has no field '${field}'`);
    if (item === null) continue;
    const rival = rivalOf(message, field, given);
    if (rival) return fault(`${place}: '${field}' cannot be given together with '${rival}'`);
    given.add(field);
    const read = readField(shape, item, `${place}.${field}`);
    if (!read.ok) return read;
    out[field] = read.value;
  }
  return ok(out);
}

function readField(shape: FieldShape, item: unknown, place: string): Read<unknown> {
  if (shape.form === 'single') return readValue(shape.type, item, place);
  if (shape.form === 'repeated') {
    if (!Array.isArray(item)) return fault(`${place} must be a list`);
    const values: unknown[] = [];
    for (const [index, element] of item.entries()) {
      const value = readValue(shape.type, element, `${place}[${index}]`);
      if (!value.ok) return value;
      values.push(value.value);
    }
    return ok(values);
  }
  if (!isObject(item)) return fault(`${place} must be an object`);
  const map: [string, unknown][] = [];
  for (const [key, element] of Object.entries(item)) {
    const value = readValue(shape.type, element, `${place}.${key}`);
    if (!value.ok) return value;
    map.push([key, value.value]);
  }
  return ok(Object.fromEntries(map));
}

function readValue(type: FieldShape['type'], item: unknown, place: string): Read<unknown> {
  if (isMessage(type)) return readMessage(type, item, place);
  if (isEnum(type)) {
    if (typeof item !== 'string' && typeof item !== 'number') return fault(`${place} must be a value of ${type}`);
    const value = checkEnum(type, item);
    return value.ok ? value : fault(`${place}: ${value.refusal.reason}`);
  }
  if (type === 'string' || type === 'bool') {
    const wanted = type === 'bool' ? 'boolean' : 'string';
    return typeof item === wanted ? ok(item) : fault(`${place} must be a ${wanted}`);
  }
  const number = typeof item === 'string' && /^-?\d+$/.test(item) ? Number(item) : item;
  if (typeof number !== 'number' || !isScalar(type)) return fault(`${place} must be a number`);
  const value = checkNumber(type, number);
  return value.ok ? value : fault(`${place}: ${value.refusal.reason}`);
}
