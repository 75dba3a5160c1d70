import { limits } from '../../shared/limits.ts';
import { callAfter } from '../clock.ts';
import type { RequestContext } from '../context.ts';

/**
 * Calls `gone` when the caller goes away, from `limits.callerWatchMs` on: to be told costs a sixth of what a whole
 * short request does, and whoever went before is found to be gone then. Gives the function that ends it.
 */
export function watchCaller(
  request: Pick<Request, 'signal'>,
  gone: () => void,
  { surroundings }: Pick<RequestContext, 'surroundings'>,
): () => void {
  let watched: AbortSignal | undefined;
  const watch = () => {
    const { signal } = request;
    if (signal.aborted) return gone();
    signal.addEventListener('abort', gone, { once: true });
    watched = signal;
  };
  const cancel = callAfter(limits.callerWatchMs.value, watch, surroundings);
  return () => {
    cancel();
    // The runtime's signal would keep all that `gone` knows of the request until the next full collection.
    watched?.removeEventListener('abort', gone);
  };
}
