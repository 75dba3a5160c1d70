import { type Context, type ExecutionContext, Hono } from 'hono';
import { refuse } from '../shared/refusal.ts';
import * as erasing from './audit/erase.ts';
import { createExport, listExports, readExport } from './audit/exports.ts';
import { acceptGap, listGaps } from './audit/gaps.ts';
import { lookAtHealth } from './audit/look-at-health.ts';
import { newId } from './audit/mint.ts';
import { listLogs, readLog } from './audit/read-log.ts';
import { Recorder } from './audit/record.ts';
import { rebuildIndex, searchAudit } from './audit/search.ts';
import { streamLeaves } from './audit/stream-leaves.ts';
import { refuseThrown } from './bug.ts';
import { requestSurroundings } from './clock.ts';
import type { RequestContext } from './context.ts';
import { answerPreflight, setCors } from './cors.ts';
import { answerClientSecret, answerGrant, answerTranscriptionSession } from './dialect/issue-tokens.ts';
import { openListen, openRealtime } from './dialect/open-live.ts';
import { refuseAsTorchserve, TORCHSERVE } from './dialect/torchserve.ts';
import { answerKserve } from './kserve/answer-kserve.ts';
import { linger } from './linger.ts';
import { answerMisconfigured } from './misconfigured.ts';
import {
  createRevision,
  createTransition,
  listTransitions,
  moveAlias,
  showAliases,
  showEvidence,
  showRevision,
  showRevisions,
  showTransition,
} from './model/ask-model.ts';
import { describeDefault, describeVersions, listVersions, retireVersion, setDefaultVersion } from './model/versions.ts';
import { listModels, showModel } from './models.ts';
import { describeApi } from './openapi.ts';
import { joinRoster, listPools, readOutbox } from './operate.ts';
import { showRelease, takeRelease } from './pool/release.ts';
import { createProject } from './project/create-project.ts';
import { editSegment } from './project/edit-segment.ts';
import { deleteProject, followProject, listProjects, rerunProject, showProject } from './project/look-at-projects.ts';
import { readAudio, readManifest } from './project/read-document.ts';
import { refuseWith } from './refuse.ts';
import { type Bindings, readSettings, settingProblems } from './settings.ts';
import { transcribe } from './short/transcribe.ts';
import { transcribeRecording } from './short/transcribe-recording.ts';
import { serveStream } from './stream/serve.ts';
import { rateLimitHeaders } from './tenant/rate-limit.ts';
import { bookUsage } from './upload/book-usage.ts';
import { createUpload } from './upload/create-upload.ts';
import { followUpload } from './upload/follow-upload.ts';
import { deleteUpload, listUploads, rerunUpload, showUpload } from './upload/look-at-uploads.ts';
import { readTranscript } from './upload/read-transcript.ts';
import { replayJobs } from './upload/replay-jobs.ts';

type Answer = (request: Request, context: RequestContext, name: string) => Response | Promise<Response>;

/** Every address the edge answers, and with what. */
export const routes: Readonly<Record<string, Readonly<Record<string, Answer>>>> = {
  '/healthz': { GET: () => Response.json({ status: 'ok' }) },
  '/v1/audio/transcriptions': { POST: transcribe },
  '/v1/auth/grant': { POST: answerGrant },
  '/v1/listen': { GET: openListen, POST: transcribeRecording },
  '/v1/realtime': { GET: openRealtime },
  '/v1/realtime/client_secrets': { POST: answerClientSecret },
  '/v1/realtime/transcription_sessions': { POST: answerTranscriptionSession },
  '/v1/models': { GET: listModels },
  '/v1/models/:name': { GET: showModel },
  '/v1/models/:name/revisions': { GET: showRevisions, POST: createRevision },
  '/v1/models/:name/revisions/:revision': { GET: showRevision },
  '/v1/models/:name/revisions/:revision/evidence': { GET: showEvidence },
  '/v1/models/:name/transitions': { GET: listTransitions, POST: createTransition },
  '/v1/models/:name/transitions/:id': { GET: showTransition },
  '/v1/models/:name/aliases': { GET: showAliases },
  '/v1/models/:name/aliases/:alias': { PUT: moveAlias },
  [`${TORCHSERVE}/models`]: { GET: listVersions },
  [`${TORCHSERVE}/models/:name`]: { GET: describeDefault },
  [`${TORCHSERVE}/models/:name/:version`]: { GET: describeVersions, DELETE: retireVersion },
  [`${TORCHSERVE}/models/:name/:version/set-default`]: { PUT: setDefaultVersion },
  '/v1/openapi.json': { GET: () => describeApi() },
  '/v1/stream': { GET: serveStream },
  '/v1/jobs/replay': { POST: replayJobs },
  '/v1/release': { GET: showRelease, PUT: takeRelease },
  '/v1/usage': { POST: bookUsage },
  '/v1/uploads': { GET: listUploads, POST: createUpload },
  '/v1/uploads/:name': { GET: showUpload, DELETE: deleteUpload },
  '/v1/uploads/:name/events': { GET: followUpload },
  '/v1/uploads/:name/rerun': { POST: rerunUpload },
  '/v1/uploads/:name/transcript': { GET: readTranscript },
  '/v1/projects': { GET: listProjects, POST: createProject },
  '/v1/projects/:name': { GET: showProject, DELETE: deleteProject },
  '/v1/projects/:name/events': { GET: followProject },
  '/v1/projects/:name/rerun': { POST: rerunProject },
  '/v1/projects/:name/documents/:document/audio': { GET: readAudio },
  '/v1/projects/:name/documents/:document/manifest': { GET: readManifest },
  '/v1/projects/:name/documents/:document/segments/:segment': { PUT: editSegment },
  '/v1/pools': { GET: listPools },
  '/v1/pools/heartbeat': { GET: joinRoster },
  '/v1/audit/outbox': { GET: readOutbox },
  '/v1/audit/exports': { GET: listExports, POST: createExport },
  '/v1/audit/exports/:name{.+}': { GET: readExport },
  '/v1/audit/stream': { GET: streamLeaves },
  '/v1/audit/erasures': { GET: erasing.listErasures, POST: erasing.eraseSubject },
  '/v1/audit/holds': { GET: erasing.listHolds, POST: erasing.setHold },
  '/v1/audit/holds/:name/release': { POST: erasing.releaseHold },
  '/v1/audit/gaps': { GET: listGaps },
  '/v1/audit/gaps/accept': { POST: acceptGap },
  '/v1/audit/index': { POST: rebuildIndex },
  '/v1/audit/search': { GET: searchAudit },
  '/v1/audit/health': { GET: lookAtHealth },
  '/v1/audit/log': { GET: listLogs },
  '/v1/audit/log/:name{.+}': { GET: readLog },
};

interface Env {
  Bindings: Bindings;
}

const app = new Hono<Env>();

type Serve = (request: Request, env: Bindings, platform: Platform, name?: string) => Promise<Response>;
type Platform = Pick<ExecutionContext, 'waitUntil'> & { abort?(reason: string): void };

/** Addresses without a name in them, by method: what they say is found at a glance. */
const fixed = new Map<string, Map<string, Serve>>();

for (const [path, answers] of Object.entries(routes)) {
  const allow = [...Object.keys(answers), 'OPTIONS'];
  const own = new Map<string, Serve>();
  if (!path.includes(':')) fixed.set(path, own);
  for (const [method, answer] of Object.entries(answers)) {
    const served = serve(answer, method === 'POST');
    own.set(method, served);
    app.on(method, path, route(served, path.includes(':name')));
  }
  app.options(path, route(serve((request) => answerPreflight(request, allow))));
  const tell = path.startsWith(TORCHSERVE) ? refuseAsTorchserve : refuseWith;
  app.all(path, route(serve(() => tell(refuse('method_wrong', { allow: allow.join(', ') })))));
}
app.all(`${TORCHSERVE}/*`, route(serve(() => refuseAsTorchserve(refuse('route_unknown')))));

// A protocol of its own, which says of itself what it has.
for (const path of ['/v2', '/v2/*']) {
  app.options(path, route(serve((request) => answerPreflight(request, ['GET', 'POST', 'OPTIONS']))));
  app.all(path, route(serve(answerKserve)));
}

/** Methods and paths that hono dispatches on. */
export const registered: readonly { readonly method: string; readonly path: string }[] = app.routes;

app.notFound(route(serve(() => refuseWith(refuse('route_unknown')))));

function route(served: Serve, named = false): (c: Context<Env>) => Promise<Response> {
  const platform = (c: Context<Env>): Platform => ({ waitUntil: (work) => c.executionCtx.waitUntil(work) });
  return (c) => served(c.req.raw, c.env, platform(c), named ? (c.req.param('name') ?? '') : '');
}

/** The answer to a request, whatever its address: the same as `app.fetch`, which only has to look at names. */
export function answerRequest(
  request: Request,
  env: Bindings,
  context: ExecutionContext,
): Response | Promise<Response> {
  const path = pathOf(request.url);
  const problems = settingProblems(env);
  if (problems.length > 0) return answerMisconfigured(path, problems);
  const served = fixed.get(path)?.get(request.method);
  return served ? served(request, env, context) : app.fetch(request, env, context);
}

function pathOf(url: string): string {
  const from = url.indexOf('/', url.indexOf('//') + 2);
  const query = url.indexOf('?', from);
  return query < 0 ? url.slice(from) : url.slice(from, query);
}

/**
 * What all answers have in common. One function and no middleware: hono then calls it without a chain of promises.
 * `fresh`: no cache keeps an answer, so it can do without what only browsers of other sites read, where none asks.
 */
function serve(answer: Answer, fresh = false): Serve {
  return async (request, env, platform, name = '') => {
    const id = newId(Date.now());
    let response: Response;
    let context: RequestContext | undefined;
    try {
      context = makeContext(id, env, platform);
      response = await answer(request, context, name);
      if (!context.dressed) {
        const { status } = response;
        // The answer to an upgrade belongs to the runtime.
        if (status === 101) return response;
        if (status >= 400) response = linger(request, response, context);
      }
    } catch (error) {
      response = refuseWith(refuseThrown(id, error));
      if (context) context.dressed = false;
    }
    if (!context?.dressed) {
      response.headers.set('x-request-id', id);
      for (const [name, value] of Object.entries(rateLimitHeaders(context?.quota))) response.headers.set(name, value);
    }
    if (!fresh || request.headers.has('origin')) setCors(response.headers);
    return response;
  };
}

function makeContext(id: string, env: Bindings, platform: Platform): RequestContext {
  const settings = readSettings(env);
  const surroundings = requestSurroundings();
  const waitUntil = (work: Promise<unknown>) => platform.waitUntil(work);
  const abort = (reason: string) => platform.abort?.(reason);
  const recorder = new Recorder({
    ...{ gates: env.GATE, zones: settings.zones, waitMs: settings.auditWaitMs },
    ...{ surroundings, waitUntil },
  });
  return { id, env, settings, surroundings, recorder, waitUntil, abort, discardBody: undefined, dressed: false };
}
