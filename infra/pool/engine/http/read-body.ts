import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { MiB } from '../../../../shared/bytes.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';

/** One request body, before and after decompression; Triton's default. */
const ENGINE_BODY_BYTES = 64 * MiB;
/** All bodies that are being read or inferred; beyond it the engine answers 503. */
const ENGINE_BODY_BYTES_IN_FLIGHT = 256 * MiB;

const unpackers: Record<string, (data: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>> = {
  gzip: promisify(gunzip) as never,
  deflate: promisify(inflate) as never,
};

const tooLarge = () =>
  refuse('INVALID_ARG', `request size is over the maximum input size of ${ENGINE_BODY_BYTES} bytes`, 'REJECTED');

/** Memory budget of all request bodies. A body holds its share until its response is done. */
export class BodyBudget {
  #used = 0;
  /** Takes bytes if there is capacity; the caller gives them back. */
  take(bytes: number): boolean {
    if (this.#used + bytes > ENGINE_BODY_BYTES_IN_FLIGHT) return false;
    this.#used += bytes;
    return true;
  }
  give(bytes: number): void {
    this.#used -= bytes;
  }
}

/**
 * Reads the whole body within both bounds and decompresses it. `hold` receives the bytes taken from the
 * budget.
 */
export async function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  hold: (bytes: number) => void,
): Promise<Result<Uint8Array, EngineRefusal>> {
  const busy = () => refuse('UNAVAILABLE', 'too many request bodies are in memory, try again', 'REJECTED');
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > ENGINE_BODY_BYTES) return tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  // An early exit must not destroy the connection, which still carries the refusal.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.byteLength;
    if (length > ENGINE_BODY_BYTES) return tooLarge();
    if (!budget.take(chunk.byteLength)) return busy();
    hold(chunk.byteLength);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks, length);
  const encoding = request.headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return ok(body);
  const unpack = Object.hasOwn(unpackers, encoding) ? unpackers[encoding] : undefined;
  if (!unpack) return refuse('UNSUPPORTED', `content-encoding '${encoding.slice(0, 40)}' is not supported`);
  try {
    const plain = await unpack(body, { maxOutputLength: ENGINE_BODY_BYTES });
    if (!budget.take(plain.byteLength)) return busy();
    hold(plain.byteLength);
    return ok(plain);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge();
    return refuse('INVALID_ARG', `the body is not valid ${encoding}`);
  }
}
