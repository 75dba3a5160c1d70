import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { refuseField } from '../../../edge/http/refuse-field.ts';
import { publicText } from '../../../shared/refusal.ts';

const body = z.strictObject({
  format: z.enum(['json', 'text']),
  documents: z.array(z.strictObject({ text: z.string() })),
  zone: z.union([z.literal('eu'), z.literal('us')]),
});
const whole = { format: 'json', documents: [{ text: 'x' }], zone: 'eu' };

describe('C10 a body that breaks a rule', () => {
  it.each([
    ['misses a choice', { ...whole, format: undefined }, 'The field "format" is missing.'],
    ['misses a nested member', { ...whole, documents: [{}] }, 'The field "documents.0.text" is missing.'],
    ['misses one of several shapes', { ...whole, zone: undefined }, 'The field "zone" is missing.'],
    ['holds another type', { ...whole, documents: [{ text: 5 }] }, /^The field "documents.0.text" is not valid: /],
    ['holds null', { ...whole, zone: null }, /^The field "zone" is not valid: /],
    ['has one member more', { ...whole, extra: 1 }, 'The field "extra" is not valid: is not known.'],
    ['is no object', 5, /^The field "body" is not valid: /],
  ])('%s', (_, json, text) => {
    const { error } = body.safeParse(json);
    expect(error && publicText(refuseField(error, json))).toEqual(
      typeof text === 'string' ? text : expect.stringMatching(text),
    );
  });
});
