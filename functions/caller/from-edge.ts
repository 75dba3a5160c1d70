// The one entry for calls that only the edge may make.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { DEADLINE_HEADER, REQUEST_HEADER } from '../../shared/callers.ts';
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
      const answer = await serveInScope(bounds, () => then(request, caller.value, value));
      logCall(request, answer);
      return answer;
    } catch (error) {
      if (!isStorageFull(error)) throw error;
      console.error(JSON.stringify({ what: 'storage_full' }));
      return answerNo(refuseFull('functions'));
    }
  };
}

/** Form of the edge's request ids: no other text of a header is logged. */
const REQUEST_ID = /^[0-9a-f-]{36}$/;

/** Logs a call that changes something or fails, under the id that the edge's line has. */
function logCall({ method, url, headers }: HttpRequest, { status = 200 }: HttpResponseInit): void {
  if (method === 'GET' && status < 400) return;
  const request = headers.get(REQUEST_HEADER) ?? '';
  if (!REQUEST_ID.test(request)) return;
  console.log(JSON.stringify({ what: 'call', request, method, path: new URL(url).pathname, status }));
}
