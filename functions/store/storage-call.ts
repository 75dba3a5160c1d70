// Storage calls within a request of the edge: each is bounded, and the first write checks the deadline.
import type { RestError } from '@azure/storage-blob';
import { beginWrite, isInScope, StorageSilent } from '../caller/request-scope.ts';

/**
 * One storage call within a request of the edge: three tries of a slow account fit before the edge gives up.
 */
const STORAGE_ANSWER_MS = 3_000;

/** Calls storage. Outside of a request the call has no signal, and its errors are those of the client. */
export async function callStorage<T>(
  kind: 'read' | 'write',
  call: (options: { abortSignal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  if (!isInScope()) return call({});
  if (kind === 'write') beginWrite();
  const abortSignal = AbortSignal.timeout(STORAGE_ANSWER_MS);
  try {
    return await call({ abortSignal });
  } catch (error) {
    if (abortSignal.aborted || isSilent(error)) throw new StorageSilent('storage does not answer', { cause: error });
    throw error;
  }
}

/** Recognises an error without a status: no answer came. */
const isSilent = (error: unknown): boolean =>
  error instanceof Error && error.name === 'RestError' && (error as RestError).statusCode === undefined;
