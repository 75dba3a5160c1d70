import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

const LINE_END = Buffer.from('\r\n');
const HEADERS_END = Buffer.from('\r\n\r\n');

export interface FilePart {
  /** Text parts before the file, and from the end of `read` on also `model` and `language` behind it. */
  readonly fields: ReadonlyMap<string, string>;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  /** The next bytes of the file; `undefined` once it has ended and so has the form. A refusal is the end, too. */
  read(): Promise<Result<Uint8Array | undefined>>;
}

/** Reads bytes of a body; `undefined` at its end. */
export type ReadBytes = () => Promise<Result<Uint8Array | undefined>>;

/**
 * Opens the part `file` of a multipart form (RFC 7578) while it arrives. Memory: a chunk, the headers of a part, short
 * values. Refuses with `form_invalid`, `field_missing`, `field_invalid`, or as the body does.
 */
export async function openFilePart(read: ReadBytes, boundary: string): Promise<Result<FilePart>> {
  const form = new Form(read, boundary);
  const fields = new Map<string, string>();
  // Bytes before the first boundary belong to no part.
  const start = await form.skip();
  if (!start.ok) return start;
  for (let parts = 0; parts < limits.formFields.value; parts += 1) {
    const headers = await form.headers();
    if (!headers.ok) return headers;
    if (!headers.value) return no(refuse('field_missing', { field: 'file' }));
    const { name, filename, contentType } = readPartHeaders(headers.value);
    if (name === 'file') return ok({ fields, filename, contentType, read: () => form.content(fields) });
    const value = await form.value(name);
    if (!value.ok) return value;
    if (!fields.has(name)) fields.set(name, value.value);
  }
  return no(broken);
}

const broken = refuse('form_invalid');

/** A form as a sequence of parts; each is read to its end before the next. */
class Form {
  readonly #read: ReadBytes;
  readonly #delimiter: Buffer;
  /** The first boundary may start the body: its line end is supplied. */
  #rest: Buffer = LINE_END;
  /** The end of the current part was seen. */
  #ended = false;

  constructor(read: ReadBytes, boundary: string) {
    this.#read = read;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** Appends the next bytes. A form that ends here is truncated. */
  async #more(): Promise<Refusal | undefined> {
    const piece = await this.#read();
    if (!piece.ok) return piece.refusal;
    if (!piece.value) return broken;
    const { buffer, byteOffset, byteLength } = piece.value;
    const view = Buffer.from(buffer, byteOffset, byteLength);
    this.#rest = this.#rest.length === 0 ? view : Buffer.concat([this.#rest, view]);
    return undefined;
  }

  /** The next bytes of the part; `undefined` at its end. */
  async part(): Promise<Result<Buffer | undefined>> {
    if (this.#ended) return ok(undefined);
    for (;;) {
      const at = this.#rest.indexOf(this.#delimiter);
      // The end of the buffer may be the start of a boundary.
      const sure = at >= 0 ? at : this.#rest.length - this.#delimiter.length + 1;
      if (sure > 0) {
        const bytes = this.#rest.subarray(0, sure);
        this.#rest = this.#rest.subarray(sure);
        return ok(bytes);
      }
      if (at === 0) {
        this.#rest = this.#rest.subarray(this.#delimiter.length);
        this.#ended = true;
        return ok(undefined);
      }
      const refusal = await this.#more();
      if (refusal) return no(refusal);
    }
  }

  async skip(): Promise<Result<undefined>> {
    for (;;) {
      const bytes = await this.part();
      if (!bytes.ok) return bytes;
      if (!bytes.value) return ok(undefined);
    }
  }

  async value(name: string): Promise<Result<string>> {
    const limit = limits.formFieldBytes.value;
    const pieces: Buffer[] = [];
    for (let length = 0; ; ) {
      const bytes = await this.part();
      if (!bytes.ok) return bytes;
      if (!bytes.value) return ok(Buffer.concat(pieces).toString('utf8'));
      length += bytes.value.length;
      if (length > limit) return no(refuse('field_invalid', { field: name, rule: `has more than ${limit} bytes` }));
      pieces.push(bytes.value);
    }
  }

  /** Headers of the next part; `undefined` when there is none. */
  async headers(): Promise<Result<string | undefined>> {
    while (this.#rest.length < 2) {
      const refusal = await this.#more();
      if (refusal) return no(refusal);
    }
    if (this.#rest[0] === 0x2d && this.#rest[1] === 0x2d) return ok(undefined);
    for (;;) {
      const end = this.#rest.indexOf(HEADERS_END);
      if (end > limits.partHeaderBytes.value) return no(broken);
      if (end >= 0) {
        const text = this.#rest.subarray(0, end).toString('utf8');
        this.#rest = this.#rest.subarray(end + HEADERS_END.length);
        // An empty part ends at once: its boundary may use the line end of its headers.
        this.#ended = false;
        return ok(text);
      }
      if (this.#rest.length > limits.partHeaderBytes.value) return no(broken);
      const refusal = await this.#more();
      if (refusal) return no(refusal);
    }
  }

  /**
   * Returns the next bytes of the file. Behind them it reads the rest of the form, so that a truncated one is refused,
   * and adds routing fields that are not yet in `fields`.
   */
  async content(fields: Map<string, string>): Promise<Result<Uint8Array | undefined>> {
    const bytes = await this.part();
    if (!bytes.ok || bytes.value) return bytes;
    for (;;) {
      const headers = await this.headers();
      if (!headers.ok) return headers;
      if (headers.value === undefined) return ok(undefined);
      const { name } = readPartHeaders(headers.value);
      const wanted = ROUTING.has(name) && !fields.has(name);
      const part = wanted ? await this.value(name) : await this.skip();
      if (!part.ok) return part;
      if (part.value !== undefined) fields.set(name, part.value);
    }
  }
}

const ROUTING: ReadonlySet<string> = new Set(['model', 'language']);

/**
 * Reads a file of at most `limits.heldBodyBytes` to its end, so that the fields behind it are known, and returns it to be
 * read again. Refuses a longer one with `hints_missing`. Memory: less than the block that every upload buffers.
 */
export async function bufferFile(file: FilePart): Promise<Result<FilePart>> {
  const limit = limits.heldBodyBytes.value;
  const pieces: Uint8Array[] = [];
  for (let length = 0; ; ) {
    const piece = await file.read();
    if (!piece.ok) return piece;
    if (!piece.value) break;
    length += piece.value.byteLength;
    if (length > limit) return no(refuse('hints_missing', { limit }));
    // A copy: a piece may be a small view of a large buffer.
    pieces.push(piece.value.slice());
  }
  return ok({ ...file, read: async () => ok(pieces.shift()) });
}

function readPartHeaders(text: string) {
  const line = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'im').exec(text)?.[1]?.trim();
  const disposition = line('content-disposition') ?? '';
  const parameter = (name: string) => new RegExp(`;\\s*${name}="([^"]*)"`, 'i').exec(disposition)?.[1];
  return { name: parameter('name') ?? '', filename: parameter('filename'), contentType: line('content-type') };
}
