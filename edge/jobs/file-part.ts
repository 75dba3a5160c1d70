import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { FORM_FIELD_BYTES, FORM_FIELDS_MAX } from '../../shared/speech/limits.ts';
import { HINTS_BYTES } from '../http/caller-body.ts';
import { MultipartReader, type ReadBytes } from '../http/multipart.ts';

export interface FilePart {
  /** Text parts before the file, and from the end of `read` on also `model` and `language` behind it. */
  readonly fields: ReadonlyMap<string, string>;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  /** Returns the next bytes of the file; `undefined` once the file and the form have ended. A refusal is the end, too. */
  read(): Promise<Result<Uint8Array | undefined>>;
}

/**
 * Opens the part `file` of a multipart form while it arrives. Memory: a chunk, the headers of a part, short values.
 * Refuses with `form_invalid`, `field_missing`, `field_invalid`, or as the body does.
 */
export async function openFilePart(read: ReadBytes, boundary: string): Promise<Result<FilePart>> {
  const form = new MultipartReader(read, boundary);
  const fields = new Map<string, string>();
  for (let parts = 0; parts < FORM_FIELDS_MAX; parts += 1) {
    const head = await form.next();
    if (!head.ok) return head;
    if (!head.value) return no(refuse('field_missing', { field: 'file' }));
    const { name, filename, contentType } = head.value;
    if (name === 'file') return ok({ fields, filename, contentType, read: () => readFile(form, fields) });
    const value = await readField(form, name);
    if (!value.ok) return value;
    if (!fields.has(name)) fields.set(name, value.value);
  }
  return no(refuse('form_invalid'));
}

const ROUTING: ReadonlySet<string> = new Set(['model', 'language']);

/**
 * Returns the next bytes of the file. Behind them it reads the rest of the form, so that a truncated one is refused, and
 * adds routing fields that are not yet in `fields`.
 */
async function readFile(form: MultipartReader, fields: Map<string, string>): Promise<Result<Uint8Array | undefined>> {
  const bytes = await form.bytes();
  if (!bytes.ok || bytes.value) return bytes;
  for (;;) {
    const head = await form.next();
    if (!head.ok) return head;
    if (!head.value) return ok(undefined);
    const { name } = head.value;
    if (!ROUTING.has(name) || fields.has(name)) continue;
    const value = await readField(form, name);
    if (!value.ok) return value;
    fields.set(name, value.value);
  }
}

async function readField(form: MultipartReader, name: string): Promise<Result<string>> {
  const limit = FORM_FIELD_BYTES;
  const text = await form.text(limit);
  if (!text.ok) return text;
  if (text.value !== undefined) return ok(text.value);
  return no(refuse('field_invalid', { field: name, rule: `has more than ${limit} bytes` }));
}

/**
 * Reads the first `HINTS_BYTES` of a file, so that the fields behind a shorter one are known, and returns it to be read
 * from its first byte. `isWhole` reports that nothing follows. Memory: that of a block, which every upload buffers.
 */
export async function bufferFile(file: FilePart): Promise<Result<FilePart & { readonly isWhole: boolean }>> {
  const pieces: Uint8Array[] = [];
  let isWhole = false;
  for (let length = 0; length <= HINTS_BYTES && !isWhole; ) {
    const piece = await file.read();
    if (!piece.ok) return piece;
    isWhole = !piece.value;
    length += piece.value?.byteLength ?? 0;
    // A copy: a piece may be a small view of a large buffer.
    if (piece.value) pieces.push(piece.value.slice());
  }
  const read = async () => (pieces.length === 0 && !isWhole ? file.read() : ok(pieces.shift()));
  return ok({ ...file, isWhole, read });
}
