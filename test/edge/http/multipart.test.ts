import { describe, expect, it } from 'vitest';
import { readBoundary } from '../../../edge/http/multipart.ts';
import { findFields } from '../../../edge/protocol/hints.ts';
import { FORM_FIELD_BYTES, PART_HEADER_BYTES } from '../../../shared/speech/limits.ts';

type Part = readonly [headers: string, value: string | Uint8Array];

function build(boundary: string, parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap(([headers, value]) => [
    Buffer.from(`--${boundary}\r\n${headers}\r\n\r\n`),
    Buffer.from(value as string),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

const field = (name: string, value: string): Part => [`Content-Disposition: form-data; name="${name}"`, value];
const file = (bytes: Uint8Array): Part => [
  'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav',
  bytes,
];

async function scan(body: Uint8Array, sizes: () => number, names = ['model', 'language'], boundary = 'X') {
  async function* chunks() {
    for (let at = 0; at < body.length; ) {
      const size = sizes();
      yield body.subarray(at, at + size);
      at += size;
    }
  }
  return findFields(chunks(), boundary, names);
}

describe('C10 hints from the body', () => {
  const bytes = crypto.getRandomValues(new Uint8Array(5_000));
  const form = build('X', [
    file(bytes),
    field('prompt', 'model'),
    field('model', 'reference-en'),
    field('language', 'en'),
  ]);

  it('found whatever way the body is cut', async () => {
    for (let size = 1; size < 200; size += 1) {
      const { found } = await scan(form, () => size);
      expect(Object.fromEntries(found)).toEqual({ model: 'reference-en', language: 'en' });
    }
    let seed = 7;
    for (let round = 0; round < 100; round += 1) {
      const { found } = await scan(form, () => {
        seed = (seed * 48_271) % 2_147_483_647;
        return 1 + (seed % 300);
      });
      expect(found.size).toBe(2);
    }
  });

  it('U5 looks behind the file for a prompt only where the model is there', async () => {
    const names = ['model', 'language', 'prompt'];
    expect((await scan(form, () => 4_096, names)).found.get('prompt')).toBe('model');
    const first = build('X', [field('model', 'm'), field('language', 'en'), file(bytes), field('prompt', 'late')]);
    const { found, isCut } = await scan(first, () => 1_000, names);
    expect([...found.keys()]).toEqual(['model', 'language']);
    expect(isCut).toBe(false);
  });

  it.each([
    ['text before the file', [field('model', 'm'), file(bytes)]],
    ['a name without quotes', [['content-disposition: form-data; name=model', 'm'] as Part]],
    [
      'headers in another order',
      [['Content-Type: text/plain\r\nContent-Disposition: form-data; name="model"', 'm'] as Part],
    ],
    ['the spelling with []', [field('model[]', 'm')]],
    ['an empty part before it', [field('prompt', ''), field('model', 'm')]],
    ['a part that looks like a boundary', [field('prompt', '\r\n--Y\r\n--'), field('model', 'm')]],
    ['bytes that contain half a boundary', [file(Buffer.from('\r\n--\r\n-\r\n--')), field('model', 'm')]],
  ])('%s', async (_, parts) => {
    expect((await scan(build('X', parts), () => 7, ['model'])).found.get('model')).toBe('m');
  });

  it.each([
    ['a file that is called model', [['Content-Disposition: form-data; name="model"; filename="model"', 'm'] as Part]],
    ['a value that is too long', [field('model', 'm'.repeat(FORM_FIELD_BYTES + 1))]],
    ['headers that do not end', [[`X: ${'x'.repeat(PART_HEADER_BYTES + 1)}`, 'm'] as Part]],
    ['a field of another name', [field('models', 'm')]],
  ])('not found: %s', async (_, parts) => {
    expect((await scan(build('X', parts), () => 50, ['model'])).found.size).toBe(0);
  });

  it.each([
    'name="model"\r\n\r\nm\r\n--X',
    '--X--\r\n--X\r\ncontent-disposition: form-data; name=model\r\n\r\nm\r\n--X--',
  ])('not found in something that is no form: %j', async (text) => {
    for (let size = 1; size < 20; size += 1) expect((await scan(Buffer.from(text), () => size)).found.size).toBe(0);
  });

  it('found behind a preamble (RFC 2046 §5.1.1), cut anywhere', async () => {
    const preamble = Buffer.from('This is a message in several parts --X.\r\n\r\n-- X\r\n');
    const form = Buffer.concat([preamble, build('X', [file(Buffer.from('abc')), field('model', 'm')])]);
    for (let size = 1; size <= form.length; size += 1) {
      expect((await scan(form, () => size, ['model'])).found.get('model')).toBe('m');
    }
  });

  it.each([-4, -3, -2, -1, 0, 1, 2, 3, 4])(
    'headers %i bytes from their bound: the same answer for every cut',
    async (off) => {
      const headers = 'Content-Disposition: form-data; name="model"\r\nX: ';
      const room = PART_HEADER_BYTES - headers.length - 2 + off;
      const form = build('X', [[headers + 'x'.repeat(room), 'm']]);
      const whole = (await scan(form, () => form.length, ['model'])).found.get('model');
      expect(whole).toBe(off <= 0 ? 'm' : undefined);
      for (let cut = form.length - 40; cut < form.length; cut += 1) {
        let at = 0;
        expect((await scan(form, () => (at++ === 0 ? cut : 1), ['model'])).found.get('model')).toBe(whole);
      }
    },
  );

  it('the first of two counts, as for a caller that repeats itself', async () => {
    const form = build('X', [field('model', 'a'), field('model', 'b')]);
    expect((await scan(form, () => 9, ['model', 'x'])).found.get('model')).toBe('a');
  });

  it.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['multipart/form-data; charset=utf-8; boundary="a b"', 'a b'],
    ['multipart/form-data; BOUNDARY=abc; x=y', 'abc'],
    ['multipart/form-data', undefined],
  ])('boundary of %s', (contentType, boundary) => {
    expect(readBoundary(contentType)).toBe(boundary);
  });
});
