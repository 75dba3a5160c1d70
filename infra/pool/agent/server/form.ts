import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { KiB } from '../../../../shared/bytes.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../../../shared/seal/limits.ts';
import { FORM_FIELD_BYTES, FORM_FIELDS_MAX, PART_HEADER_BYTES } from '../../../../shared/speech/limits.ts';

/** All text fields of a form as JSON: they travel back in one event, which has room for twice as much. */
const FORM_BYTES = 30 * KiB;
/** Header lines of one part of a form; real ones have three. */
const PART_HEADERS_MAX = 16;

/** Text parts of a form by name, spelled without `[]`, values in order. */
export type Fields = Record<string, string[]>;

/** Consumes the file part while it arrives; `before` are the fields in front of it. A refusal ends the form. */
export type ReadFile = (bytes: AsyncIterable<Uint8Array>, before: Fields) => Promise<Result<undefined>>;

/** Parts that the parser accepts: fields and files up to one over their bounds, and some that it ignores. */
const PARTS = FORM_FIELDS_MAX + 8;

const broken = (detail: string): Refusal => refuse('form_invalid', undefined, detail);
const invalid = (field: string, rule: string): Refusal => refuse('field_invalid', { field: field.slice(0, 64), rule });

function openForm(contentType: string): Result<BusboyInstance> {
  if (!/^multipart\/form-data\b/i.test(contentType)) return no(refuse('content_type_wrong'));
  try {
    return ok(
      new Busboy({
        headers: { 'content-type': contentType },
        // Some clients send the file without a name; text parts never have one.
        isPartAFile: (field, _type, file) => field === 'file' || file !== undefined,
        fileHwm: SEAL_SEGMENT_BYTES,
        limits: {
          fieldSize: FORM_FIELD_BYTES,
          // One more than may be: it has the name for the refusal.
          fields: FORM_FIELDS_MAX + 1,
          files: 2,
          parts: PARTS,
          headerPairs: PART_HEADERS_MAX,
          headerSize: PART_HEADER_BYTES,
        },
      }),
    );
  } catch {
    return no(refuse('content_type_wrong', undefined, 'no boundary'));
  }
}

const jsonBytes = (text: string) => Buffer.byteLength(JSON.stringify(text));

/** Collects text parts within their bounds. */
function createFields() {
  const fields = new Map<string, string[]>();
  let count = 0;
  let bytes = 0;
  return {
    add(name: string, value: string): Refusal | undefined {
      count++;
      if (count > FORM_FIELDS_MAX) return invalid(name, `must not follow ${FORM_FIELDS_MAX} others`);
      // As they travel back: a name and a value in JSON, with `:`, `[`, `]` and `,`.
      bytes += jsonBytes(name) + jsonBytes(value) + 4;
      if (bytes > FORM_BYTES) {
        return invalid(name, `must not take all fields together over ${FORM_BYTES} bytes`);
      }
      const key = name.replace(/\[\]$/, '');
      const values = fields.get(key);
      if (values) values.push(value);
      else fields.set(key, [value]);
      return undefined;
    },
    all: (): Fields => structuredClone(Object.fromEntries(fields)),
  };
}

/**
 * Reads a multipart form as it arrives. `readFile` gets the bytes of the one part named `file` and decides the pace:
 * nothing is read from `body` that it has not asked for, but one segment. Text parts may come before and after it.
 */
export async function readMultipart(
  contentType: string,
  body: AsyncIterable<Result<Uint8Array>>,
  readFile: ReadFile,
): Promise<Result<Fields>> {
  const opened = openForm(contentType);
  if (!opened.ok) return opened;
  const form = opened.value;
  const fields = createFields();
  let file: Promise<Result<undefined>> | undefined;
  let part: BusboyFileStream | undefined;

  const stopped = new Promise<Result<Fields>>((resolve) => {
    const stop = (refusal: Refusal | undefined) => refusal && resolve(no(refusal));
    form.on('error', () => stop(broken('not multipart')));
    form.on('partsLimit', () => stop(invalid('form', `must have at most ${PARTS} parts`)));
    form.on('field', (name, value, _nameCut, cut) => {
      if (cut) stop(invalid(String(name), `must be at most ${FORM_FIELD_BYTES} bytes`));
      else if (name === undefined || name === '') stop(broken('field without a name'));
      else stop(fields.add(name, value));
    });
    form.on('file', (name, stream) => {
      // The end of a form that was cut comes here too; `error` of the form says so.
      stream.on('error', () => {});
      if (name !== 'file' || file) {
        stream.resume();
        return stop(invalid(String(name), name === 'file' ? 'must appear once' : 'is not a file'));
      }
      part = stream;
      file = readFile(stream, fields.all()).catch(() => no(broken('file part ended early')));
      file.then((result) => {
        if (!result.ok) stop(result.refusal);
      });
    });
  });

  async function pump(): Promise<Result<Fields>> {
    for await (const bytes of body) {
      if (!bytes.ok) return bytes;
      // The callback comes when the parser and the reader of the file are ready for more.
      await new Promise<void>((resolve, reject) =>
        form.write(bytes.value, (error) => (error ? reject(error) : resolve())),
      );
    }
    await new Promise<void>((resolve) => {
      form.once('finish', () => resolve());
      form.end();
    });
    if (!file) return no(refuse('field_missing', { field: 'file' }));
    const read = await file;
    return read.ok ? ok(fields.all()) : read;
  }

  try {
    return await Promise.race([stopped, pump().catch(() => no(broken('not multipart')))]);
  } finally {
    part?.destroy();
    form.destroy();
  }
}
