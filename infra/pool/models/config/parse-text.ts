import { MiB } from '../../../../shared/bytes.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import { type FieldShape, fieldShape, isEnum, isMessage, type MessageName, type ModelConfig } from './schema.ts';
import { type Token, tokenise } from './tokens.ts';
import { checkEnum, checkNumber, emptyMessage, isScalar, rivalOf } from './value.ts';

/** Nesting of messages in a config.pbtxt: real ones stay below, and deeper ones must not fill the stack. */
const MODEL_CONFIG_DEPTH = 32;
/** Size of a config.pbtxt; real ones are a few KiB. */
export const MODEL_CONFIG_BYTES = MiB;

/**
 * Parses a config.pbtxt (protobuf text format). Anything outside the table is an error with its line, because
 * a silently dropped setting is worse than a model that does not load.
 */
export function parseText(source: string): Read<ModelConfig> {
  const most = MODEL_CONFIG_BYTES;
  if (source.length > most) return fault(`it has ${source.length} characters, and ${most} at most are read`);
  const tokens = tokenise(source);
  if (!tokens.ok) return tokens;
  const reader = new Reader(tokens.value);
  const config = readMessage(reader, 'ModelConfig', undefined, 0);
  return config.ok ? ok(config.value as ModelConfig) : config;
}

class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }
  get next(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '', line: 0 };
  }
  take(): Token {
    const token = this.next;
    this.#at++;
    return token;
  }
  /** Takes the mark if it is next. */
  skip(...marks: string[]): boolean {
    const found = this.next.kind === 'mark' && marks.includes(this.next.text);
    if (found) this.#at++;
    return found;
  }
}

/** Longest error text, characters: errors quote words of the file, of any length. */
const LONGEST = 300;

const at = (token: Token, text: string) => fault(`line ${token.line}: ${text.slice(0, LONGEST)}`);
const show = (token: Token): string => (token.kind === 'end' ? 'the end of the file' : `'${token.text}'`);

function readMessage(reader: Reader, message: MessageName, close: string | undefined, depth: number): Read<object> {
  if (depth > MODEL_CONFIG_DEPTH) return at(reader.next, 'nested too deeply');
  const out: Record<string, unknown> = emptyMessage(message);
  const given = new Set<string>();
  for (;;) {
    if (close === undefined ? reader.next.kind === 'end' : reader.skip(close)) return ok(out);
    const token = reader.take();
    if (token.kind !== 'name') return at(token, `a field of ${message} was expected, got ${show(token)}`);
    const field = token.text;
    const shape = fieldShape(message, field);
    if (!shape) return at(token, `${message} has no field '${field}'`);
    if (shape.form === 'single' && given.has(field)) return at(token, `'${field}' is given twice`);
    const rival = rivalOf(message, field, given);
    if (rival) return at(token, `'${field}' cannot be given together with '${rival}'`);
    given.add(field);
    const colon = reader.skip(':');
    const value = readField(reader, shape, colon, depth);
    if (!value.ok) return value;
    const stored = store(out, field, shape, value.value);
    if (stored) return at(token, stored);
    reader.skip(',', ';');
  }
}

/** Stores values in the message; returns an error instead of overwriting a map entry. */
function store(out: Record<string, unknown>, field: string, shape: FieldShape, values: unknown[]): string | undefined {
  if (shape.form === 'single') {
    out[field] = values[0];
    return undefined;
  }
  if (shape.form === 'repeated') {
    for (const value of values) (out[field] as unknown[]).push(value);
    return undefined;
  }
  const map = out[field] as Record<string, unknown>;
  for (const { key, value } of values as { key: string; value: unknown }[]) {
    if (Object.hasOwn(map, key)) return `'${field}' has the key '${key}' twice`;
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return undefined;
}

/**
 * Reads one occurrence of a field: a single value, or for repeated fields and maps also a list in brackets.
 */
function readField(reader: Reader, shape: FieldShape, colon: boolean, depth: number): Read<unknown[]> {
  if (!colon && shape.form !== 'map' && !isMessage(shape.type)) return at(reader.next, "':' was expected");
  const read = () => (shape.form === 'map' ? readEntry(reader, shape, depth) : readValue(reader, shape.type, depth));
  if (shape.form === 'single' || !reader.skip('[')) {
    const value = read();
    return value.ok ? ok([value.value]) : value;
  }
  const values: unknown[] = [];
  if (reader.skip(']')) return ok(values);
  for (;;) {
    const value = read();
    if (!value.ok) return value;
    values.push(value.value);
    if (reader.skip(']')) return ok(values);
    if (!reader.skip(',')) return at(reader.next, `',' or ']' was expected, got ${show(reader.next)}`);
  }
}

function readEntry(reader: Reader, shape: FieldShape, depth: number): Read<{ key: string; value: unknown }> {
  const open = reader.next;
  if (!reader.skip('{', '<')) return at(open, `'{ key value }' was expected, got ${show(open)}`);
  const close = open.text === '{' ? '}' : '>';
  const entry: { key?: unknown; value?: unknown } = {};
  while (!reader.skip(close)) {
    const token = reader.take();
    if (token.text !== 'key' && token.text !== 'value') return at(token, `a map entry has no field '${token.text}'`);
    if (entry[token.text] !== undefined) return at(token, `'${token.text}' is given twice`);
    const type = token.text === 'key' ? (shape.key ?? 'string') : shape.type;
    if (!reader.skip(':') && !isMessage(type)) return at(reader.next, "':' was expected");
    const value = readValue(reader, type, depth);
    if (!value.ok) return value;
    entry[token.text] = value.value;
    reader.skip(',', ';');
  }
  if (entry.key === undefined) return at(open, 'the map entry has no key');
  const missing = isMessage(shape.type) ? emptyMessage(shape.type) : '';
  return ok({ key: String(entry.key), value: entry.value ?? missing });
}

function readValue(reader: Reader, type: FieldShape['type'], depth: number): Read<unknown> {
  const open = reader.next;
  if (isMessage(type)) {
    if (!reader.skip('{', '<')) return at(open, `'{' was expected, got ${show(open)}`);
    return readMessage(reader, type, open.text === '{' ? '}' : '>', depth + 1);
  }
  if (type === 'string') return readString(reader);
  const negative = reader.skip('-');
  const token = reader.take();
  if (isEnum(type)) return readEnum(token, type, negative);
  if (type === 'bool') return negative ? at(token, 'a boolean has no sign') : readBool(token);
  return readNumber(token, type, negative);
}

/** Joins adjacent strings, as C does. */
function readString(reader: Reader): Read<string> {
  if (reader.next.kind !== 'string') return at(reader.next, `a string was expected, got ${show(reader.next)}`);
  let text = '';
  while (reader.next.kind === 'string') text += reader.take().text;
  return ok(text);
}

function readEnum(token: Token, type: string, negative: boolean): Read<string> {
  if (negative || (token.kind !== 'name' && token.kind !== 'number')) {
    return at(token, `a value of ${type} was expected, got ${show(token)}`);
  }
  const value = checkEnum(type, token.kind === 'number' ? Number(token.text) : token.text);
  return value.ok ? value : at(token, value.refusal.reason);
}

const booleans: Record<string, boolean> = {
  true: true,
  True: true,
  t: true,
  1: true,
  false: false,
  False: false,
  f: false,
  0: false,
};

function readBool(token: Token): Read<boolean> {
  const value = token.kind === 'string' ? undefined : booleans[token.text];
  return value === undefined ? at(token, `true or false was expected, got ${show(token)}`) : ok(value);
}

function readNumber(token: Token, type: FieldShape['type'], negative: boolean): Read<number> {
  const named: Record<string, number> = { inf: Infinity, infinity: Infinity, nan: Number.NaN };
  const value = token.kind === 'number' ? spelled(token.text) : token.kind === 'name' ? named[token.text] : undefined;
  if (value === undefined || !isScalar(type)) return at(token, `a number was expected, got ${show(token)}`);
  const checked = checkNumber(type, negative && value !== 0 ? -value : value);
  return checked.ok ? checked : at(token, checked.refusal.reason);
}

/** Parses hexadecimal, octal (a leading zero) and decimal numbers, with the `f` that C allows on floats. */
function spelled(text: string): number {
  if (/^0[xX]/.test(text)) return Number(text);
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  return Number(text.replace(/[fF]$/, ''));
}
