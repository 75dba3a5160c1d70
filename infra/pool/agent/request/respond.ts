import { promisify } from 'node:util';
import { deflate, gzip } from 'node:zlib';
import type { Encoding } from '../../../../shared/kserve/call.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { ANSWER_EVENT_BYTES } from '../settings/limits.ts';
import type { Answer } from './answer.ts';

/**
 * Longest wait for a client to read a piece of an answer: a stalled client holds memory, and for a stream an
 * engine slot.
 */
export const INFER_READ_MS = 15_000;

const packers: Record<Encoding, (data: Uint8Array) => Promise<Uint8Array>> = {
  gzip: promisify(gzip) as never,
  deflate: promisify(deflate) as never,
};

/** Under this packing costs more than it saves. */
const PACKED_MIN = 1_024;

/** One record holds the piece and the byte that says that it is one. */
const PIECE = ANSWER_EVENT_BYTES - 1;

/** Sends a whole body with its headers, packed when the caller takes it so. Refuses with `reader_slow`. */
export async function respond(
  answer: Pick<Answer, 'send' | 'sendBody'>,
  headers: Readonly<Record<string, string>>,
  chunks: readonly Uint8Array[],
  accept: Encoding | undefined,
): Promise<Result<undefined>> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  const packs = accept !== undefined && length >= PACKED_MIN;
  // A small answer is one piece; the tensors of a large one are sent from where they are.
  const whole = packs || length <= PIECE ? Buffer.concat(chunks, length) : undefined;
  const parts: readonly Uint8Array[] = whole ? [packs ? await packers[accept](whole) : whole] : chunks;
  const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
  await answer.send({ type: 'answer', headers: { ...headers, ...(packs && { 'content-encoding': accept }) }, bytes });
  for (const part of parts) {
    const sent = await sendPieces(answer, part);
    if (!sent.ok) return sent;
  }
  return ok(undefined);
}

/**
 * Resolves when there is room for more. Refuses with `reader_slow` when the client reads nothing for
 * `INFER_READ_MS`.
 */
export async function sendPieces(answer: Pick<Answer, 'sendBody'>, bytes: Uint8Array): Promise<Result<undefined>> {
  for (let at = 0; at < bytes.byteLength; at += PIECE) {
    if (!(await inTime(answer.sendBody(bytes.subarray(at, at + PIECE))))) {
      return no(refuse('reader_slow', undefined, 'an answer in pieces'));
    }
  }
  return ok(undefined);
}

async function inTime(sent: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), INFER_READ_MS);
  });
  try {
    return await Promise.race([sent.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
