import { limits } from '../../shared/limits.ts';
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
  const { call, after } = surroundings;
  if (call) return call(limits.callerWatchMs.value, watch);
  const alarm = after(limits.callerWatchMs.value);
  void alarm.rings.then(watch);
  return alarm.cancel;
}
