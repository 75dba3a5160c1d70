import { Hono } from 'hono';
import { refuse } from '../shared/refusal.ts';
import { Recorder } from './audit/record.ts';
import { logBug } from './bug.ts';
import { realSurroundings } from './clock.ts';
import type { RequestContext } from './context.ts';
import { answerPreflight, setCors } from './cors.ts';
import { linger } from './linger.ts';
import { listModels, showModel } from './models.ts';
import { describeApi } from './openapi.ts';
import { joinRoster, listPools, readOutbox } from './operate.ts';
import { refuseWith } from './refuse.ts';
import { type Bindings, readSettings } from './settings.ts';
import { transcribe } from './short/transcribe.ts';

type Answer = (request: Request, context: RequestContext, name: string) => Response | Promise<Response>;

/** Every address the edge answers, and with what. */
export const routes: Readonly<Record<string, Readonly<Record<string, Answer>>>> = {
  '/healthz': { GET: () => Response.json({ status: 'ok' }) },
  '/v1/audio/transcriptions': { POST: transcribe },
  '/v1/models': { GET: listModels },
  '/v1/models/:name': { GET: showModel },
  '/v1/openapi.json': { GET: () => describeApi() },
  '/v1/pools': { GET: listPools },
  '/v1/pools/heartbeat': { GET: joinRoster },
  '/v1/audit/outbox': { GET: readOutbox },
};

export const app = new Hono<{ Bindings: Bindings; Variables: { requestId: string } }>();

app.use(async (c, next) => {
  const id = crypto.randomUUID();
  c.set('requestId', id);
  await next();
  // The answer to an upgrade belongs to the runtime.
  if (c.res.status === 101) return;
  c.res.headers.set('x-request-id', id);
  setCors(c.res.headers);
});

for (const [path, answers] of Object.entries(routes)) {
  const allow = [...Object.keys(answers), 'OPTIONS'];
  for (const [method, answer] of Object.entries(answers)) {
    app.on(method, path, async (c) => {
      const context = makeContext(c.get('requestId'), c.env, (work) => c.executionCtx.waitUntil(work));
      const response = await answer(c.req.raw, context, c.req.param('name') ?? '');
      return linger(c.req.raw, response, context);
    });
  }
  app.options(path, (c) => answerPreflight(c.req.raw, allow));
  app.all(path, () => refuseWith(refuse('method_wrong', { allow: allow.join(', ') })));
}

function makeContext(id: string, env: Bindings, waitUntil: RequestContext['waitUntil']): RequestContext {
  const settings = readSettings(env);
  const surroundings = realSurroundings;
  const recorder = new Recorder(env.GATE, settings.zones, surroundings, waitUntil);
  return { id, env, settings, surroundings, recorder, waitUntil, discardBody: undefined };
}

app.notFound(() => refuseWith(refuse('route_unknown')));

app.onError((error, c) => {
  logBug(c.get('requestId'), error);
  return refuseWith(refuse('internal'));
});
