// JSON Schemas of values in addresses, headers and bodies.
import { z } from 'zod';

/** Returns the JSON Schema of a request value: 2020-12, which OpenAPI 3.1 uses unchanged. */
export const input = (schema: z.ZodType) => strip(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
export const output = (schema: z.ZodType) => strip(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }));

function strip({ $schema: _, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest;
}

export const text = (minLength: number, maxLength: number) => ({ type: 'string', minLength, maxLength });
export const whole = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) => ({ type: 'integer', minimum, maximum });
export const oneOf = (values: readonly string[]) => ({ type: 'string', enum: [...values] });
/**
 * Text of at most `most` characters in which `%` begins UTF-8 as RFC 3986 encodes it: sequences of RFC 3629, of which
 * none is overlong or half a surrogate pair.
 */
export function percentEncoded(most: number) {
  const hex = '[0-9A-Fa-f]';
  const tail = `%[89ABab]${hex}`;
  const sequences = [
    ...['[^%]', `%[0-7]${hex}`, `%(?:[Cc][2-9A-Fa-f]|[Dd]${hex})${tail}`],
    ...[`%[Ee]0%[ABab]${hex}${tail}`, `%[Ee][1-9A-CEFa-cef]${tail}${tail}`, `%[Ee][Dd]%[89]${hex}${tail}`],
    ...[`%[Ff]0%[9ABab]${hex}${tail}${tail}`, `%[Ff][1-3]${tail}${tail}${tail}`, `%[Ff]4%8${hex}${tail}${tail}`],
  ];
  return { type: 'string', pattern: `^(?:${sequences.join('|')}){1,${most}}$` };
}

export const like = ({ source }: RegExp) => ({ type: 'string', pattern: source });
