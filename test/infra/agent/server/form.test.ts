import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Fields, readMultipart } from '../../../../infra/pool/agent/server/form.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../shared/seal/limits.ts';
import { FORM_FIELD_BYTES, FORM_FIELDS_MAX } from '../../../../shared/speech/limits.ts';
import { boundary, formBytes, multipart, type Part } from '../fixtures.ts';

async function* pieces(bytes: Uint8Array, size = 65_536): AsyncGenerator<Result<Uint8Array>> {
  for (let at = 0; at < bytes.length; at += size) yield ok(bytes.subarray(at, at + size));
}

async function read(bytes: Uint8Array, size?: number, contentType = multipart) {
  const got: Uint8Array[] = [];
  const form = await readMultipart(contentType, pieces(bytes, size), async (file) => {
    for await (const chunk of file) got.push(chunk);
    return ok(undefined);
  });
  return { form, file: Buffer.concat(got) };
}
const reasonOf = (form: Result<Fields>) => (form.ok ? undefined : form.refusal.reason);

const file: Part = { name: 'file', value: Uint8Array.of(1, 2, 13, 10, 45, 45, 3), filename: 'a.wav' };

describe('multipart forms', () => {
  it('gives fields before and after the file, `x[]` as `x`, in order', async () => {
    const { form, file: bytes } = await read(
      formBytes([
        { name: 'model', value: 'm' },
        file,
        { name: 'timestamp_granularities[]', value: 'word' },
        { name: 'timestamp_granularities', value: 'segment' },
        { name: 'prompt', value: 'Grüße' },
      ]),
    );
    expect(form).toEqual(ok({ model: ['m'], timestamp_granularities: ['word', 'segment'], prompt: ['Grüße'] }));
    expect([...bytes]).toEqual([...(file.value as Uint8Array)]);
  });

  it('wherever the bytes are cut', async () => {
    const bytes = formBytes([{ name: 'model', value: 'm' }, file, { name: 'language', value: 'en' }]);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: bytes.length }), async (size) => {
        const got = await read(bytes, size);
        expect(got.form).toEqual(ok({ model: ['m'], language: ['en'] }));
        expect([...got.file]).toEqual([...(file.value as Uint8Array)]);
      }),
      { numRuns: 30 },
    );
  });

  it('takes a part named file without a file name', async () => {
    const { form, file: bytes } = await read(formBytes([{ name: 'file', value: 'RIFF' }]));
    expect([form, bytes.toString()]).toEqual([ok({}), 'RIFF']);
  });

  const many = (count: number): Part[] => Array.from({ length: count }, (_, i) => ({ name: `f${i}`, value: 'x' }));
  it.each<[string, string, Uint8Array, string?]>([
    ['content_type_wrong', 'another type', formBytes([file]), 'application/json'],
    ['content_type_wrong', 'no boundary', formBytes([file]), 'multipart/form-data'],
    ['form_invalid', 'cut inside the file', formBytes([file]).subarray(0, -60)],
    ['form_invalid', 'cut before the last boundary', formBytes([file], false)],
    [
      'form_invalid',
      'cut inside a field',
      formBytes([file, { name: 'model', value: 'reference' }], false).subarray(0, -6),
    ],
    ['form_invalid', 'cut inside the headers', formBytes([file]).subarray(0, 40)],
    ['form_invalid', 'another boundary', formBytes([file]), 'multipart/form-data; boundary=other'],
    ['form_invalid', 'nothing', new Uint8Array(0)],
    ['form_invalid', 'a field without a name', formBytes([{ name: '', value: 'x' }, file])],
    [
      'field_invalid',
      'a field too long',
      formBytes([{ name: 'prompt', value: 'x'.repeat(FORM_FIELD_BYTES + 1) }, file]),
    ],
    ['field_invalid', 'two files', formBytes([file, file])],
    ['field_invalid', 'a file of another name', formBytes([{ ...file, name: 'image' }])],
    ['field_missing', 'no file', formBytes([{ name: 'model', value: 'm' }])],
  ])('%s: %s', async (reason, _, bytes, contentType) => {
    expect(reasonOf((await read(bytes, 50, contentType)).form)).toBe(reason);
  });

  it.each<[string, Part[], string, RegExp]>([
    ['too many fields', many(FORM_FIELDS_MAX + 1), `f${FORM_FIELDS_MAX}`, /follow 64 others/],
    ['too many fields of one name', Array(65).fill({ name: 'a', value: '' }), 'a', /follow 64 others/],
    ['a field too long', [{ name: 'prompt', value: 'x'.repeat(8_193) }], 'prompt', /at most 8192 bytes/],
    ['fields too long together', many(8).map((p) => ({ ...p, value: 'x'.repeat(8_000) })), 'f3', /all fields together/],
    // Six bytes each in the event that carries them back.
    ['fields that grow', many(1).map((p) => ({ ...p, value: '\u0001'.repeat(8_000) })), 'f0', /all fields together/],
  ])('names the field and the rule that a bound stops: %s', async (_, parts, field, rule) => {
    const { form } = await read(formBytes([...parts, file]));
    expect(form).toMatchObject({ ok: false, refusal: { reason: 'field_invalid', params: { field } } });
    expect(form.ok ? '' : form.refusal.params?.rule).toMatch(rule);
  });

  it('takes as many fields as may be', async () => {
    const { form } = await read(formBytes([...many(FORM_FIELDS_MAX), file]));
    expect(form.ok && Object.keys(form.value).length).toBe(FORM_FIELDS_MAX);
  });

  it('does not search a form of endless parts without a name', async () => {
    const part = `--${boundary}\r\ncontent-disposition: form-data\r\n\r\n\r\n`;
    expect(reasonOf((await read(Buffer.from(part.repeat(1_000)))).form)).toMatch(/_invalid$/);
  });

  it('stops at a refusal of the body and at one of the file', async () => {
    async function* broken(): AsyncGenerator<Result<Uint8Array>> {
      yield ok(formBytes([file], false).subarray(0, -5));
      yield no(refuse('seal_broken'));
    }
    const wait = async (bytes: AsyncIterable<Uint8Array>) => {
      for await (const _ of bytes);
      return ok(undefined);
    };
    expect(reasonOf(await readMultipart(multipart, broken(), wait))).toBe('seal_broken');
    const refused = await readMultipart(multipart, pieces(formBytes([file])), async () =>
      no(refuse('audio_unsupported')),
    );
    expect(reasonOf(refused)).toBe('audio_unsupported');
  });

  it('field names of JavaScript are only names', async () => {
    const { form } = await read(formBytes([{ name: '__proto__', value: 'x' }, file]));
    expect(form.ok && Object.keys(form.value)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  it('holds a few segments of a 100 MB file, never all of it (C5)', async () => {
    const segment = new Uint8Array(SEAL_SEGMENT_BYTES).fill(7);
    const segments = Math.ceil((100 * 1024 * 1024) / segment.length);
    let pulled = 0;
    let read = 0;
    let most = 0;
    async function* body(): AsyncGenerator<Result<Uint8Array>> {
      yield ok(Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`));
      for (let i = 0; i < segments; i++) {
        pulled += segment.length;
        most = Math.max(most, pulled - read);
        yield ok(segment);
      }
      yield ok(Buffer.from(`\r\n--${boundary}--\r\n`));
    }
    const form = await readMultipart(multipart, body(), async (bytes) => {
      for await (const chunk of bytes) {
        read += chunk.length;
        // A slow reader: everything that can run runs before it asks for more.
        if (read % (64 * segment.length) < chunk.length) for (let i = 0; i < 20; i++) await new Promise(setImmediate);
      }
      return ok(undefined);
    });
    expect(form.ok).toBe(true);
    expect(read).toBe(segments * segment.length);
    expect(most).toBeLessThanOrEqual(6 * segment.length);
  });
});
