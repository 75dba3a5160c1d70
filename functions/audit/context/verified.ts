// Requests of the edge about logs.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import { type EdgeHandler, fromEdge } from '../../caller/from-edge.ts';
import type { LogContext } from './log-context.ts';

/** Accepts requests of the edge only, and refuses them all where no logs are kept. */
export const verified = (
  context: LogContext | undefined,
  then: (request: HttpRequest, caller: EdgeCaller, context: LogContext) => Promise<HttpResponseInit>,
): EdgeHandler => fromEdge(context ? ok(context) : no(refuse('audit_closed', undefined, 'no AUDIT_KEY')), then);
