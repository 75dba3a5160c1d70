import { limits } from '../../shared/limits.ts';

const EMPTY = Buffer.alloc(0);
const LINE_END = Buffer.from('\r\n');
const HEADERS_END = Buffer.from('\r\n\r\n');

/** `boundary` of a multipart content type (RFC 2046 §5.1.1), or `undefined`. */
export function readBoundary(contentType: string): string | undefined {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  return match?.[1] ?? match?.[2];
}

/**
 * Looks for named text parts in a multipart form while it arrives, chunk by chunk, cut anywhere: what it finds depends
 * on the bytes alone. It finds hints only: the agent parses the form and has the last word, and what this scanner does not understand it merely does not find.
 * Memory: one chunk, and of an unfinished part at most its headers or a short value.
 */
export class FieldScanner {
  readonly found = new Map<string, string>();
  readonly #names: ReadonlySet<string>;
  readonly #delimiter: Buffer;
  /** What stands before the first boundary (RFC 2046 §5.1.1 allows a preamble) is skipped as a part would be. */
  #state: 'headers' | 'value' | 'skip' | 'over' = 'skip';
  /** The first boundary may be the first thing of all: the line end before it is thought. */
  #rest: Buffer = LINE_END;
  #name = '';

  constructor(boundary: string, names: readonly string[]) {
    this.#names = new Set(names);
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** All names were found, or nothing more can be. */
  get done(): boolean {
    return this.#state === 'over' || this.found.size === this.#names.size;
  }

  feed(chunk: Uint8Array): void {
    if (this.done) return;
    const view = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    // Nearly all forms begin with their boundary: then nothing has to be put before it.
    const begins =
      this.#rest === LINE_END && startsWith(view, this.#delimiter) ? this.#afterBoundary(view, -2) : undefined;
    let data = begins !== undefined ? view.subarray(begins) : this.#with(view);
    for (;;) {
      const used = this.#step(data);
      if (used === undefined) break;
      data = data.subarray(used);
    }
    this.#rest = data;
    if (this.done) this.#rest = EMPTY;
  }

  #with(view: Buffer): Buffer {
    return this.#rest.length === 0 ? view : Buffer.concat([this.#rest, view]);
  }

  /** How many bytes were dealt with; `undefined` when more are needed first. */
  #step(data: Buffer): number | undefined {
    switch (this.#state) {
      case 'headers':
        return this.#readHeaders(data);
      case 'value':
      case 'skip':
        return this.#readPart(data);
      case 'over':
        return undefined;
    }
  }

  #afterBoundary(data: Buffer, at: number): number | undefined {
    const after = at + this.#delimiter.length;
    if (data.length < after + 2) return undefined;
    if (data[after] === 0x2d) {
      this.#state = 'over';
      return undefined;
    }
    this.#state = 'headers';
    // The line end stays, so that a part without headers ends its (empty) header block right here.
    return after;
  }

  #readHeaders(data: Buffer): number | undefined {
    const end = data.indexOf(HEADERS_END);
    if (end < 0 || end > limits.partHeaderBytes.value) {
      // Only once no end within the bound can come any more: the answer must not depend on how the bytes arrive.
      if (data.length >= limits.partHeaderBytes.value + HEADERS_END.length) this.#state = 'over';
      return undefined;
    }
    const headers = data.toString('latin1', 0, end);
    this.#name = fieldName(headers);
    const wanted = this.#names.has(this.#name) && !this.found.has(this.#name);
    this.#state = wanted ? 'value' : 'skip';
    // Two bytes of the header end stay: with them an empty part, too, ends in a whole delimiter.
    return end + 2;
  }

  #readPart(data: Buffer): number | undefined {
    const end = data.indexOf(this.#delimiter);
    const limit = limits.formFieldBytes.value;
    if (end < 0) {
      if (this.#state === 'value' && data.length > limit + this.#delimiter.length) this.#state = 'skip';
      // Of a part that is skipped only what may be the start of a delimiter matters.
      const keep = this.#delimiter.length - 1;
      return this.#state === 'skip' && data.length > keep ? data.length - keep : undefined;
    }
    if (this.#state === 'value' && end <= limit) this.found.set(this.#name, data.toString('utf8', 2, end));
    return this.#afterBoundary(data, end);
  }
}

/** Whether bytes begin with a delimiter, whose line end is thought before them. */
const startsWith = (bytes: Buffer, delimiter: Buffer): boolean =>
  bytes.length >= delimiter.length && bytes.compare(delimiter, 2, delimiter.length, 0, delimiter.length - 2) === 0;

/** `name` of a part, spelled without `[]`; empty for a file or a part without a name. */
function fieldName(headers: string): string {
  const line = /^content-disposition:.*$/im.exec(headers)?.[0] ?? '';
  if (/;\s*filename\*?=/i.test(line)) return '';
  const match = /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i.exec(line);
  return (match?.[1] ?? match?.[2] ?? '').replace(/\[\]$/, '');
}
