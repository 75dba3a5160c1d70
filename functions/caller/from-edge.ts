// The one entry for calls that only the edge may make.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { DEADLINE_HEADER } from '../../shared/callers.ts';
import type { Result } from '../../shared/result.ts';
import { isStorageFull, refuseFull } from '../../shared/storage-full.ts';
import { answerNo } from '../http/answer.ts';
import type { Settings } from '../settings.ts';
import { type EdgeCaller, verifyEdge } from './edge-caller.ts';
import { deadlineIn, serveInScope } from './request-scope.ts';

export type EdgeHandler = (request: HttpRequest) => Promise<HttpResponseInit>;

interface EdgeContext {
  readonly settings: Pick<Settings, 'EDGE_KEYS'>;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Verifies the edge and serves its call within the bounds of the call. Without a context every call is refused. */
export function fromEdge<Context extends EdgeContext>(
  context: Result<Context>,
  then: (request: HttpRequest, caller: EdgeCaller, context: Context) => Promise<HttpResponseInit>,
): EdgeHandler {
  return async (request) => {
    if (!context.ok) return answerNo(context.refusal);
    const { value } = context;
    const caller = await verifyEdge(request.headers.get('authorization'), value.settings, value.now());
    if (!caller.ok) return answerNo(caller.refusal);
    const deadline = deadlineIn(request.headers.get(DEADLINE_HEADER));
    const bounds = { deadline, now: () => value.now() };
    try {
      return await serveInScope(bounds, () => then(request, caller.value, value));
    } catch (error) {
      if (!isStorageFull(error)) throw error;
      console.error(JSON.stringify({ what: 'storage_full' }));
      return answerNo(refuseFull('functions'));
    }
  };
}
