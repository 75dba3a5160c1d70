import { ok } from '../result.ts';
import { fault, type Read } from './fault.ts';
import { parseJson } from './parse-json.ts';

/** The header that says how many bytes of the body are JSON; what follows them are binary tensors. */
export const headerLengthField = 'inference-header-content-length';

const encoder = new TextEncoder();

/** A message ready to be sent. The chunks are windows into the caller's tensors: nothing is copied here. */
export interface Body {
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Uint8Array[];
  readonly byteLength: number;
}

export function makeBody(json: string, binary: readonly Uint8Array[]): Body {
  const head = encoder.encode(json);
  const byteLength = binary.reduce((sum, chunk) => sum + chunk.byteLength, head.byteLength);
  // A message that ends with empty binary tensors still needs the header, so the test is for tensors, not bytes.
  const headers =
    binary.length > 0
      ? { 'content-type': 'application/octet-stream', [headerLengthField]: String(head.byteLength) }
      : { 'content-type': 'application/json' };
  return { headers, chunks: [head, ...binary], byteLength };
}

/** Splits a body into its JSON value and its binary tail. `headerLength` is the header's text, null when absent. */
export function splitBody(
  body: Uint8Array,
  headerLength: string | null | undefined,
): Read<{ json: unknown; tail: Uint8Array }> {
  const length = headerLength == null ? body.byteLength : readLength(headerLength);
  if (length === undefined) return fault(`${headerLengthField} '${headerLength}' is not a length`);
  if (length > body.byteLength) {
    return fault(`${headerLengthField} is ${length}, but the body has only ${body.byteLength} bytes`);
  }
  const json = parseJson(body.subarray(0, length));
  return json.ok ? ok({ json: json.value, tail: body.subarray(length) }) : json;
}

function readLength(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Hands out the binary tail piece by piece; whatever is left at the end is an error of the sender. */
export class Tail {
  readonly #bytes: Uint8Array;
  #at = 0;
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }
  take(name: string, length: number): Read<Uint8Array> {
    const left = this.#bytes.byteLength - this.#at;
    if (length > left) return fault(`tensor '${name}' announces ${length} binary bytes, ${left} are left`);
    this.#at += length;
    return ok(this.#bytes.subarray(this.#at - length, this.#at));
  }
  get left(): number {
    return this.#bytes.byteLength - this.#at;
  }
}
