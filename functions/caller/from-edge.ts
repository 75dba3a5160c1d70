// The one way in for questions that only the edge may ask.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { Result } from '../../shared/result.ts';
import { answerNo } from '../answer.ts';
import type { Settings } from '../settings.ts';
import { type EdgeCaller, verifyEdge } from './edge-caller.ts';

export type Question = (request: HttpRequest) => Promise<HttpResponseInit>;

interface EdgeDesk {
  readonly settings: Pick<Settings, 'EDGE_KEYS'>;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Without a desk nobody is asked who they are. */
export function fromEdge<Desk extends EdgeDesk>(
  desk: Result<Desk>,
  then: (request: HttpRequest, caller: EdgeCaller, desk: Desk) => Promise<HttpResponseInit>,
): Question {
  return async (request) => {
    if (!desk.ok) return answerNo(desk.refusal);
    const caller = await verifyEdge(request.headers.get('authorization'), desk.value.settings, desk.value.now());
    return caller.ok ? then(request, caller.value, desk.value) : answerNo(caller.refusal);
  };
}
