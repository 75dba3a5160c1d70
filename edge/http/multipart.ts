import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { PART_HEADER_BYTES } from '../../shared/speech/limits.ts';

const LINE_END = Buffer.from('\r\n');
const HEADERS_END = Buffer.from('\r\n\r\n');

/** Reads the next bytes of a body; `undefined` at its end. */
export type ReadBytes = () => Promise<Result<Uint8Array | undefined>>;

/** Headers of a part (RFC 7578). */
export interface PartHead {
  /** Without `[]` at its end; empty for a part without a name. */
  readonly name: string;
  readonly isFile: boolean;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
}

/** Returns the `boundary` of a multipart content type (RFC 2046 §5.1.1). */
export function readBoundary(contentType: string): string | undefined {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  return match?.[1] ?? match?.[2];
}

const broken = refuse('form_invalid');

/**
 * A multipart form as a sequence of parts, read while it arrives. What it finds depends on the bytes alone, however they
 * are cut. Refuses with `form_invalid`, or as the body does. Memory: a chunk, and the headers of one part.
 */
export class MultipartReader {
  readonly #read: ReadBytes;
  readonly #delimiter: Buffer;
  /** Starts with a line end, since the first boundary may be the first bytes of all. */
  #rest: Buffer = LINE_END;
  /** Whether the delimiter behind the current part, or behind the preamble, was read. */
  #atDelimiter = false;
  /** Bytes of the header end that were left in front of the part: with them an empty part ends in a whole delimiter. */
  #lead = 0;

  constructor(read: ReadBytes, boundary: string) {
    this.#read = read;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** Skips the rest of the current part and returns the head of the next one; `undefined` at the end of the form. */
  async next(): Promise<Result<PartHead | undefined>> {
    for (;;) {
      const bytes = await this.bytes();
      if (!bytes.ok) return bytes;
      if (!bytes.value) break;
    }
    while (this.#rest.length < 2) {
      const refusal = await this.#more();
      if (refusal) return no(refusal);
    }
    if (this.#rest[0] === 0x2d && this.#rest[1] === 0x2d) return ok(undefined);
    const most = PART_HEADER_BYTES;
    for (;;) {
      const end = this.#rest.indexOf(HEADERS_END);
      if (end >= 0 && end <= most) {
        const text = this.#rest.toString('utf8', 0, end);
        this.#rest = this.#rest.subarray(end + HEADERS_END.length - LINE_END.length);
        this.#lead = LINE_END.length;
        this.#atDelimiter = false;
        return ok(readPartHead(text));
      }
      // Refused only once no end within the bound can follow, so that chunks do not matter.
      if (this.#rest.length >= most + HEADERS_END.length) return no(broken);
      const refusal = await this.#more();
      if (refusal) return no(refusal);
    }
  }

  /** Returns the next bytes of the current part; `undefined` at its end. */
  async bytes(): Promise<Result<Uint8Array | undefined>> {
    while (!this.#atDelimiter) {
      const at = this.#rest.indexOf(this.#delimiter);
      // The last bytes of a chunk may be the start of a delimiter.
      const sure = at >= 0 ? at : this.#rest.length - this.#delimiter.length + 1;
      if (sure > this.#lead) {
        const bytes = this.#rest.subarray(this.#lead, sure);
        this.#rest = this.#rest.subarray(sure);
        this.#lead = 0;
        return ok(bytes);
      }
      if (at >= 0) {
        this.#rest = this.#rest.subarray(at + this.#delimiter.length);
        this.#atDelimiter = true;
      } else {
        const refusal = await this.#more();
        if (refusal) return no(refusal);
      }
    }
    return ok(undefined);
  }

  /** Returns the rest of the current part as text; `undefined`, with the rest skipped later, when it is over `most` bytes. */
  async text(most: number): Promise<Result<string | undefined>> {
    const pieces: Uint8Array[] = [];
    for (let length = 0; ; ) {
      const bytes = await this.bytes();
      if (!bytes.ok) return bytes;
      if (!bytes.value) return ok(Buffer.concat(pieces, length).toString('utf8'));
      length += bytes.value.length;
      if (length > most) return ok(undefined);
      pieces.push(bytes.value);
    }
  }

  /** Adds the next chunk. A form that ends here is cut off. */
  async #more(): Promise<Refusal | undefined> {
    const piece = await this.#read();
    if (!piece.ok) return piece.refusal;
    if (!piece.value) return broken;
    const { buffer, byteOffset, byteLength } = piece.value;
    const view = Buffer.from(buffer, byteOffset, byteLength);
    this.#rest = this.#rest.length === 0 ? view : Buffer.concat([this.#rest, view]);
    return undefined;
  }
}

function readPartHead(text: string): PartHead {
  const line = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'im').exec(text)?.[1]?.trim();
  const disposition = line('content-disposition') ?? '';
  const parameter = (name: string) => {
    const match = new RegExp(`;\\s*${name}=(?:"([^"]*)"|([^\\s;"]+))`, 'i').exec(disposition);
    return match?.[1] ?? match?.[2];
  };
  return {
    name: parameter('name')?.replace(/\[\]$/, '') ?? '',
    isFile: /;\s*filename\*?=/i.test(disposition),
    filename: parameter('filename'),
    contentType: line('content-type'),
  };
}
