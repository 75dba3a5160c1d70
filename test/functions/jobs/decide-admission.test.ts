import { describe, expect, it } from 'vitest';
import { decideAdmission } from '../../../functions/jobs/decide-admission.ts';
import { newRecord } from '../../../functions/jobs/record.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { UPLOAD_BYTES } from '../../../shared/jobs/upload-contract.ts';
import { admitHead } from '../../fault/batch/sealed-head.ts';
import { KEY } from '../../fault/batch/simulation.ts';

const id = '019b76e2-9fa0-79ca-89f4-34e024e31141';
const other = '019b76e2-9fa0-79ca-89f4-34e024e31142';
const asked: NewUpload = {
  id,
  tenant: 'acme',
  class: 'batch',
  model: 'm',
  sealed: true,
  formats: ['json'],
  zone: 'eu',
  keepDays: 0,
};
const head = admitHead('acme', id, KEY.kid);
const decide = (start: Uint8Array, bytes = 5_000, more: Partial<NewUpload> = {}) => {
  const [arrived, next] = decideAdmission(newRecord({ ...asked, ...more }, 0), { bytes, etag: '"1"', start }, [KEY]);
  expect(arrived).toEqual({ type: 'arrived', bytes, etag: '"1"' });
  return next?.type === 'refused' ? next.refusal.reason : next?.type;
};

describe('C2: admission of a file', () => {
  it('takes a file sealed for this upload, of the stated size', () => {
    expect(decide(head)).toBe('admitted');
    expect(decide(head, 5_000, { bytes: 5_000 })).toBe('admitted');
    expect(decide(Buffer.concat([head, Buffer.alloc(4_000, 7)]))).toBe('admitted');
  });

  it('takes a promised plain file without inspection', () => {
    expect(decide(new Uint8Array(9), 5_000, { sealed: false })).toBe('admitted');
  });

  it.each([
    ['nothing', head, 0, 'audio_empty'],
    ['too much', head, UPLOAD_BYTES + 1, 'upload_too_large'],
    ['no head', new Uint8Array(100), 5_000, 'envelope_invalid'],
    ['half a head', head.slice(0, 80), 5_000, 'envelope_invalid'],
    ['a head of another tenant', admitHead('zebra', id, KEY.kid), 5_000, 'envelope_invalid'],
    ['a head of another upload', admitHead('acme', other, KEY.kid), 5_000, 'envelope_invalid'],
    ['a head for another key', admitHead('acme', id, 'B'.repeat(42).concat('A')), 5_000, 'envelope_invalid'],
  ])('not %s', (_, start, bytes, reason) => expect(decide(start, bytes)).toBe(reason));

  it('not another size than was said', () => expect(decide(head, 5_000, { bytes: 5_001 })).toBe('upload_size_differs'));
});
