import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  outcomeBlob,
  outcomePrefix,
  pieceOf,
  readOutcomeBlob,
  readUploadBlob,
  uploadBlob,
} from '../../../shared/jobs/paths.ts';

const id = '019b76e2-9fa0-79ca-89f4-34e024e31141';

describe('names of blobs', () => {
  it('name their owner, and parse back', () => {
    const place = { tenant: 'acme', id };
    expect(readUploadBlob(uploadBlob(place))).toEqual(place);
    for (const name of ['plan', 'transcript', 'refusal', 'pieces/0', 'results/89'] as const) {
      const outcome = { ...place, run: 12, name };
      expect(readOutcomeBlob(outcomeBlob(outcome))).toEqual(outcome);
      expect(outcomeBlob(outcome).startsWith(outcomePrefix(place))).toBe(true);
    }
    expect([pieceOf('results/7'), pieceOf('plan')]).toEqual([7, undefined]);
  });

  it.each([
    '',
    'acme',
    `acme/${id}/`,
    `acme/${id}/more`,
    `/${id}`,
    `ACME/${id}`,
    `acme/${id.toUpperCase()}`,
    `acme/../${id}`,
    `a/b/${id}`,
    'acme/019b76e2-9fa0-49ca-89f4-34e024e31141',
    `acme/${id}%00`,
    `acme\n/${id}`,
    `!tenants/${id}`,
  ])('a forged name %j has no owner', (name) => expect(readUploadBlob(name)).toBeUndefined());

  it.each([
    `acme/${id}/plan`,
    `acme/${id}/0/plan`,
    `acme/${id}/01/plan`,
    `acme/${id}/1/plan/x`,
    `acme/${id}/1/pieces/`,
    `acme/${id}/1/pieces/00`,
    `acme/${id}/1/pieces/90`,
    `acme/${id}/1/pieces/-1`,
    `acme/${id}/1/pieces/1e1`,
    `acme/${id}/1/other`,
    `acme/${id}/1/results/1/2`,
  ])('a forged outcome %j has no owner', (name) => expect(readOutcomeBlob(name)).toBeUndefined());

  it('a parsed name prints as itself', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), (name) => {
        const upload = readUploadBlob(name);
        if (upload) expect(uploadBlob(upload)).toBe(name);
        const outcome = readOutcomeBlob(name);
        if (outcome) expect(outcomeBlob(outcome)).toBe(name);
      }),
    );
  });
});
