import { limits } from '../../shared/limits.ts';
import { callAfter } from '../clock.ts';
import type { RequestContext } from '../context.ts';

/**
 * Calls `gone` when the caller goes away, from `limits.callerWatchMs` on: to be told costs a sixth of what a whole
 * short request does, and whoever went before is found to be gone then. Gives the function that ends it.
 */
export function watchCaller(
  request: Request,
  gone: () => void,
  { surroundings }: Pick<RequestContext, 'surroundings'>,
): () => void {
  const watch = () => {
    const { signal } = request;
    if (signal.aborted) gone();
    else signal.addEventListener('abort', gone, { once: true });
  };
  return callAfter(limits.callerWatchMs.value, watch, surroundings);
}
