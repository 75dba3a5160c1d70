import { Hono, type Handler as HonoHandler } from 'hono';
import { refuse } from '../shared/refusal.ts';
import * as erasing from './audit/erase.ts';
import { createExport, listExports, readExport } from './audit/exports.ts';
import { acceptGap, listGaps } from './audit/gaps.ts';
import { listLogs, readLog } from './audit/read-log.ts';
import { readOutbox } from './audit/read-outbox.ts';
import { searchAudit } from './audit/search.ts';
import { showAuditHealth } from './audit/show-health.ts';
import { streamLeaves } from './audit/stream-leaves.ts';
import type { Handler } from './context.ts';
import { answerPreflight } from './http/cors.ts';
import {
  answerThrown,
  drainRefused,
  type EdgeEnv,
  provideContext,
  reportUnadmitted,
  requireSettings,
  setHeaders,
} from './http/middleware.ts';
import { refuseWith } from './http/refuse.ts';
import { bookUsage } from './jobs/book-usage.ts';
import { createProject } from './jobs/create-project.ts';
import { createUpload } from './jobs/create-upload.ts';
import { editSegment } from './jobs/edit-segment.ts';
import { jobHandlers } from './jobs/job-routes.ts';
import { PROJECTS, UPLOADS } from './jobs/kinds.ts';
import { listUsage } from './jobs/list-usage.ts';
import { readAudio, readManifest } from './jobs/read-document.ts';
import { readTranscript } from './jobs/read-transcript.ts';
import { replayJobs } from './jobs/replay-jobs.ts';
import { describeApi } from './openapi.ts';
import { answerDeepgramProjects, isDeepgramClient } from './protocol/deepgram-projects.ts';
import { answerClientSecret, answerGrant } from './protocol/issue-tokens.ts';
import { answerKserve } from './protocol/kserve/answer-kserve.ts';
import { refuseAsTorchserve, TORCHSERVE } from './protocol/torchserve.ts';
import { unbuiltRoutes } from './protocol/unbuilt.ts';
import { listModels, showHealth, showModel } from './registry/list-models.ts';
import {
  createRevision,
  createTransition,
  listTransitions,
  moveAlias,
  planFiles,
  showAliases,
  showEvidence,
  showFiles,
  showModelTiers,
  showRevision,
  showRevisions,
  showTiers,
  showTransition,
} from './registry/model-routes.ts';
import { listNames, setName } from './registry/names.ts';
import {
  describeDefault,
  describeVersions,
  listVersions,
  retireVersion,
  setDefaultVersion,
} from './registry/versions.ts';
import { drainPool } from './routing/drain-pool.ts';
import { joinRoster, listPools } from './routing/list-pools.ts';
import { showRelease, takeRelease } from './routing/release.ts';
import { showMetrics } from './routing/show-metrics.ts';
import { showRoute } from './routing/show-route.ts';
import { listVoices } from './speak/list-voices.ts';
import { createDeepgramSpeech, createSpeech } from './speak/speak.ts';
import { openSpeak } from './speak/speak-socket.ts';
import { openListen, openRealtime, openStream } from './stream/open-live.ts';
import { transcribe } from './transcribe/transcribe.ts';
import { transcribeRecording } from './transcribe/transcribe-recording.ts';

const uploads = jobHandlers(UPLOADS);
const projects = jobHandlers(PROJECTS);

/** Handlers by path and method. Any other method of a path is refused with 405. */
const routes: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  '/healthz': { GET: showHealth },
  '/metrics': { GET: showMetrics },
  '/v1/audio/transcriptions': { POST: transcribe },
  '/v1/audio/speech': { POST: createSpeech },
  '/v1/audio/voices': { GET: listVoices },
  '/v1/auth/grant': { POST: answerGrant },
  '/v1/listen': { GET: openListen, POST: transcribeRecording },
  '/v1/speak': { GET: openSpeak, POST: createDeepgramSpeech },
  '/v1/realtime': { GET: openRealtime },
  '/v1/realtime/client_secrets': { POST: answerClientSecret },
  '/v1/models': { GET: listModels },
  '/v1/models/:name': { GET: showModel },
  '/v1/models/:name/revisions': { GET: showRevisions, POST: createRevision },
  '/v1/models/:name/revisions/:revision': { GET: showRevision },
  '/v1/models/:name/revisions/:revision/evidence': { GET: showEvidence },
  '/v1/models/:name/revisions/:revision/files': { GET: showFiles, POST: planFiles },
  '/v1/models/:name/tiers': { GET: showModelTiers },
  '/v1/models/:name/transitions': { GET: listTransitions, POST: createTransition },
  '/v1/models/:name/transitions/:id': { GET: showTransition },
  '/v1/models/:name/aliases': { GET: showAliases },
  '/v1/models/:name/aliases/:alias': { PUT: moveAlias },
  '/v1/names': { GET: listNames, POST: setName },
  [`${TORCHSERVE}/models`]: { GET: listVersions },
  [`${TORCHSERVE}/models/:name`]: { GET: describeDefault },
  [`${TORCHSERVE}/models/:name/:version`]: { GET: describeVersions, DELETE: retireVersion },
  [`${TORCHSERVE}/models/:name/:version/set-default`]: { PUT: setDefaultVersion },
  '/v1/openapi.json': { GET: async () => describeApi() },
  '/v1/stream': { GET: openStream },
  '/v1/jobs/replay': { POST: replayJobs },
  '/v1/release': { GET: showRelease, PUT: takeRelease },
  '/v1/usage': { GET: listUsage, POST: bookUsage },
  '/v1/uploads': { GET: uploads.list, POST: createUpload },
  '/v1/uploads/:name': { GET: uploads.show, DELETE: uploads.remove },
  '/v1/uploads/:name/events': { GET: uploads.follow },
  '/v1/uploads/:name/rerun': { POST: uploads.rerun },
  '/v1/uploads/:name/transcript': { GET: readTranscript },
  '/v1/projects': { GET: projects.list, POST: createProject },
  '/v1/projects/:name': { GET: projects.show, DELETE: projects.remove },
  '/v1/projects/:name/events': { GET: projects.follow },
  '/v1/projects/:name/rerun': { POST: projects.rerun },
  '/v1/projects/:name/documents/:document/audio': { GET: readAudio },
  '/v1/projects/:name/documents/:document/manifest': { GET: readManifest },
  '/v1/projects/:name/documents/:document/segments/:segment': { PUT: editSegment },
  '/v1/tiers': { GET: showTiers },
  '/v1/requests/:name/route': { GET: showRoute },
  '/v1/pools': { GET: listPools },
  '/v1/pools/heartbeat': { GET: joinRoster },
  '/v1/pools/:pool/drain': { POST: drainPool },
  '/v1/audit/outbox': { GET: readOutbox },
  '/v1/audit/exports': { GET: listExports, POST: createExport },
  '/v1/audit/exports/:name{.+}': { GET: readExport },
  '/v1/audit/stream': { GET: streamLeaves },
  '/v1/audit/erasures': { GET: erasing.listErasures, POST: erasing.eraseSubject },
  '/v1/audit/holds': { GET: erasing.listHolds, POST: erasing.setHold },
  '/v1/audit/holds/:name/release': { POST: erasing.releaseHold },
  '/v1/audit/gaps': { GET: listGaps },
  '/v1/audit/gaps/accept': { POST: acceptGap },
  '/v1/audit/search': { GET: searchAudit },
  '/v1/audit/health': { GET: showAuditHealth },
  '/v1/audit/log': { GET: listLogs },
  '/v1/audit/log/:name{.+}': { GET: readLog },
};

export const app = new Hono<EdgeEnv>();

app.use(requireSettings, provideContext, reportUnadmitted, setHeaders, drainRefused);
app.onError(answerThrown);
app.use('/v1/projects/*', async (c, next) =>
  isDeepgramClient(c.req.raw.headers) ? handle(answerDeepgramProjects)(c, next) : next(),
);

for (const [path, handlers] of Object.entries(routes)) {
  const allow = [...Object.keys(handlers), 'OPTIONS'];
  for (const [method, handler] of Object.entries(handlers)) app.on(method, path, handle(handler));
  app.options(path, (c) => answerPreflight(c.req.raw, allow));
  const answerRefusal = path.startsWith(TORCHSERVE) ? refuseAsTorchserve : refuseWith;
  app.all(path, () => answerRefusal(refuse('method_wrong', { allow: allow.join(', ') })));
}
app.all(`${TORCHSERVE}/*`, () => refuseAsTorchserve(refuse('route_unknown')));

for (const [path, handler] of Object.entries(unbuiltRoutes)) {
  app.options(path, (c) => answerPreflight(c.req.raw, ['GET', 'POST', 'OPTIONS']));
  app.all(path, handle(handler));
}

// KServe has paths, methods and errors of its own.
for (const path of ['/v2', '/v2/*']) {
  app.options(path, (c) => answerPreflight(c.req.raw, ['GET', 'POST', 'OPTIONS']));
  app.all(path, handle(answerKserve));
}

app.notFound(() => refuseWith(refuse('route_unknown')));

/** Adapts a handler of the edge to hono. */
function handle(handler: Handler): HonoHandler<EdgeEnv> {
  return (c) => handler(c.req.raw, c.get('context'), { name: '', ...c.req.param() });
}
