import { type Encoding, sequenceName } from '../../../shared/kserve/call.ts';
import { INFER_JSON_BYTES, INFER_NAME_CHARACTERS } from '../../../shared/kserve/limits.ts';
import { parseJson } from '../../../shared/kserve/parse-json.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { CallerBody } from '../../http/caller-body.ts';

export interface Framing {
  /** The header `inference-header-content-length`, as sent. */
  readonly headerLength: string | undefined;
  readonly encoding: Encoding | undefined;
  /** The header `x-auricle-sequence`, which spares looking. */
  readonly sequence: string | undefined;
}

/**
 * Finds the sequence of a request: all requests of one go to one agent. Reads the JSON part of the message as far as it
 * is in the first `BUFFERED_BODY_BYTES` of the body; the agent refuses one that is further behind.
 * Refuses with what went wrong with the body.
 */
export async function findSequence(body: CallerBody, framing: Framing): Promise<Result<string | undefined>> {
  const { headerLength, encoding, sequence } = framing;
  if (sequence !== undefined || headerLength === '0') return ok(sequence);
  const need = lengthOf(headerLength);
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body.prefix()) {
    pieces.push(chunk);
    length += chunk.byteLength;
    if (encoding === undefined && length >= need) break;
  }
  if (body.refusal) return no(body.refusal);
  // A compressed message is read to its end.
  if (body.endedAt === undefined && (encoding !== undefined || length < need)) return ok(undefined);
  const packed = Buffer.concat(pieces, length);
  const json = encoding ? await unpack(packed, encoding, need) : packed;
  return ok(json && readSequence(json.subarray(0, Math.min(need, json.length))));
}

/** Bytes of JSON; without a number that makes sense, the whole body. */
function lengthOf(headerLength: string | undefined): number {
  return headerLength !== undefined && /^\d{1,15}$/.test(headerLength)
    ? Number(headerLength)
    : Number.POSITIVE_INFINITY;
}

/** Parsing takes milliseconds for a large message, so only what names the parameter is parsed. */
function readSequence(json: Buffer): string | undefined {
  if (!json.includes('"sequence_id"')) return undefined;
  const read = parseJson(json);
  // The agent says what is wrong with it.
  if (!read.ok) return undefined;
  const message = read.value as { parameters?: { sequence_id?: unknown } } | null;
  const id = message?.parameters?.sequence_id;
  const named = (typeof id === 'string' && id !== '') || (typeof id === 'number' && id !== 0);
  return named && sequenceName(id).length <= INFER_NAME_CHARACTERS ? sequenceName(id) : undefined;
}

/** At most `most` bytes, and never more than `INFER_JSON_BYTES`; `undefined` when it cannot be unpacked. */
async function unpack(packed: Uint8Array<ArrayBuffer>, encoding: Encoding, most: number): Promise<Buffer | undefined> {
  const bound = Math.min(most, INFER_JSON_BYTES);
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream(encoding)).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    while (length < bound) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.byteLength;
    }
    return Buffer.concat(parts, length);
  } catch {
    return undefined;
  } finally {
    reader.cancel().catch(() => {});
  }
}
