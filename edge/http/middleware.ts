// Middleware of every route, in the order in which `routes.ts` applies it.
import type { Context, ExecutionContext, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import type { Span } from '../../shared/trace/span.ts';
import { realRuntime as runtime } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { newId } from '../ledger/create-event.ts';
import { Recorder } from '../ledger/record.ts';
import { reportRequest } from '../ledger/report-request.ts';
import { placeOf } from '../place.ts';
import { type Bindings, readSettings, settingProblems } from '../settings.ts';
import { Telemetry } from '../telemetry/telemetry.ts';
import { setCors } from './cors.ts';
import { drainBody } from './drain.ts';
import { answerMisconfigured } from './misconfigured.ts';
import { rateLimitHeaders } from './rate-limit.ts';
import { refuseWith } from './refuse.ts';
import { refuseThrown } from './refuse-thrown.ts';

/** Types of the edge's hono app. */
export interface EdgeEnv {
  Bindings: Bindings;
  Variables: { context: RequestContext };
}

/** The execution context of workerd, which can also reset a request's sockets. */
type Execution = ExecutionContext & { abort?(reason: string): void };

/** Answers every request with `misconfigured` while the settings have problems. */
export const requireSettings: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  const problems = settingProblems(c.env);
  if (problems.length > 0) return answerMisconfigured(c.req.path, problems);
  await next();
};

/** Creates the request's id, recorder and context. */
export const provideContext: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  const { env } = c;
  const execution: Execution = c.executionCtx;
  const settings = readSettings(env);
  const waitUntil = (work: Promise<unknown>) => execution.waitUntil(work);
  const abort = (reason: string) => execution.abort?.(reason);
  const { zones, auditWaitMs: waitMs } = settings;
  const recorder = new Recorder({ gates: env.GATE, zones, waitMs, runtime, waitUntil });
  const id = newId(Date.now());
  const address = `${c.req.method} ${c.req.path}`;
  const place = placeOf(c.req.raw);
  const telemetry = new Telemetry({ settings, roster: env.ROSTER, runtime, waitUntil });
  const span = startRequestSpan(c, telemetry, id);
  c.set('context', {
    ...{ id, address, place, env, settings, runtime, recorder, waitUntil, abort, telemetry, span },
    discardBody: undefined,
  });
  await next();
};

/** Addresses that machines read each few seconds. */
const untraced: ReadonlySet<string> = new Set(['/healthz', '/metrics', '/v1/pools/heartbeat']);

/** Begins the span of a request. A trace that begins here has the id of the request, which every log line names. */
function startRequestSpan(c: Context<EdgeEnv>, telemetry: Telemetry, id: string): Span | undefined {
  if (untraced.has(c.req.path)) return undefined;
  return telemetry.startSpan({
    name: `${c.req.method} ${routePath(c, -1)}`,
    kind: 'server',
    traceparent: c.req.header('traceparent'),
    newTrace: id.replaceAll('-', ''),
    attributes: { 'http.request.method': c.req.method, 'http.route': routePath(c, -1) },
  });
}

/** Reports a request without a session; a session reports its own. */
export const reportUnadmitted: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  const began = runtime.now();
  await next();
  const context = c.get('context');
  if (!context.admitted) reportRequest(context, { status: c.res.status, milliseconds: runtime.now() - began });
};

/**
 * Sets the headers of every response but an upgrade, which belongs to the runtime: request id, model, rate
 * limits, CORS.
 */
export const setHeaders: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  await next();
  if (c.res.status === 101) return;
  const { headers } = c.res;
  const { id, quota, model, degraded } = c.get('context');
  headers.set('x-request-id', id);
  if (model !== undefined) headers.set('x-auricle-model', model);
  if (degraded) headers.set('x-auricle-degraded', String(degraded.level));
  if (degraded?.isCached) headers.set('cache-status', 'auricle; hit');
  for (const [name, value] of Object.entries(rateLimitHeaders(quota))) headers.set(name, value);
  setCors(headers);
};

/** Drains the request's body behind a refusal. */
export const drainRefused: MiddlewareHandler<EdgeEnv> = async (c, next) => {
  await next();
  if (c.error || c.res.status < 400) return;
  const response = drainBody(c.req.raw, c.res, c.get('context'));
  // Assigned over another response, hono would merge the headers into a third.
  c.res = undefined;
  c.res = response;
};

/** Returns the refusal for an error that a handler threw, and logs it under the request's id. */
export const answerThrown = (error: Error, c: Context<EdgeEnv>): Response =>
  refuseWith(refuseThrown(c.get('context').id, error));
