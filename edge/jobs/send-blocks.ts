import {
  attemptPrefix,
  blockHeaders,
  blockList,
  blockListQuery,
  blockQuery,
  listHeaders,
  putFailure,
} from '../../shared/jobs/blocks.ts';
import { UPLOAD_BLOCK_BYTES } from '../../shared/jobs/limits.ts';
import type { UploadGrant } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late, type Runtime, within } from '../clock.ts';
import { BODY_IDLE_MS } from '../limits.ts';

/** Tries of one block that the edge writes for a waiting caller. */
const BLOCK_TRIES_MAX = 3;

type Address = Pick<UploadGrant, 'url' | 'headers'>;

/**
 * Writes a stream to the address of a grant, block by block; one block is buffered. The file exists only once
 * the stream has ended: a broken one leaves nothing. Refuses with `uploads_unavailable`; an error of the
 * stream is thrown.
 */
export async function sendBlocks(
  stream: ReadableStream<Uint8Array>,
  address: Address,
  runtime: Runtime,
): Promise<Result<undefined>> {
  const reader = stream.getReader();
  const block = new Uint8Array(UPLOAD_BLOCK_BYTES);
  const prefix = attemptPrefix();
  let filled = 0;
  let count = 0;
  const flush = async () => {
    const sent = await put(blockQuery(count, prefix), block.slice(0, filled), address, runtime);
    count += 1;
    filled = 0;
    return sent;
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (let at = 0; at < value.length; ) {
        const piece = value.subarray(at, at + block.length - filled);
        block.set(piece, filled);
        filled += piece.length;
        at += piece.length;
        if (filled < block.length) continue;
        const sent = await flush();
        if (!sent.ok) return sent;
      }
    }
    const last = filled > 0 ? await flush() : ok(undefined);
    if (!last.ok) return last;
    return await put(blockListQuery, new TextEncoder().encode(blockList(count, prefix)), address, runtime);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function put(
  query: string,
  body: Uint8Array<ArrayBuffer>,
  { url, headers }: Address,
  runtime: Runtime,
): Promise<Result<undefined>> {
  let detail = '';
  for (let attempt = 1; attempt <= BLOCK_TRIES_MAX; attempt += 1) {
    const own = query === blockListQuery ? listHeaders(headers) : blockHeaders(headers);
    const sending = putFailure(fetch(`${url}&${query}`, { method: 'PUT', headers: own, body }), query);
    const failure = await within(sending, BODY_IDLE_MS, runtime);
    if (!failure) return ok(undefined);
    detail = failure === late ? 'the store does not answer' : failure.detail;
    if (failure !== late && !failure.retryable) break;
  }
  return no(refuse('uploads_unavailable', undefined, detail));
}
