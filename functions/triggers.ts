// All triggers of the functions app. No other file uses `app`.

import { app, type HttpRequest, type HttpResponseInit } from '@azure/functions';
import { openLogContext } from './audit/context/log-context.ts';
import { isAnyHeld } from './audit/erase/hold-state.ts';
import * as erasing from './audit/erase/on-erase.ts';
import { openPrivacy } from './audit/erase/open-privacy.ts';
import { advanceExports } from './audit/export/advance-export.ts';
import * as exports from './audit/export/on-exports.ts';
import { onStream } from './audit/export/on-stream.ts';
import { openExports } from './audit/export/open-exports.ts';
import { openIndexing, openWitnessing } from './audit/follow-logs.ts';
import { onAcceptGap, onGaps } from './audit/gaps/on-gaps.ts';
import { onEvents } from './audit/intake/on-events.ts';
import { onLog, onYears } from './audit/read/on-log.ts';
import { onLogHealth } from './audit/read/on-log-health.ts';
import { readLogsHealth } from './audit/read/read-log-health.ts';
import { openReports } from './audit/report/reports.ts';
import { onSearch } from './audit/search/on-search.ts';
import { openTicker } from './audit/sequencer/on-tick.ts';
import { noteDemand } from './demand/demand.ts';
import { onDemand } from './demand/on-demand.ts';
import { findFullStores, onHealth } from './health/on-health.ts';
import { admitFile } from './jobs/admit.ts';
import { deliver } from './jobs/deliver.ts';
import { type HttpContext, projectHandlers, uploadHandlers } from './jobs/http.ts';
import { onOpenJob, onReplay } from './jobs/on-jobs.ts';
import { onLost, onStalled } from './jobs/on-timer.ts';
import { createPost } from './jobs/post.ts';
import { takeOutcome } from './jobs/take-outcome.ts';
import { evaluateLive } from './registry/evaluate-live.ts';
import { hashForgotten, hashUpload } from './registry/model-files.ts';
import { onLive } from './registry/on-live.ts';
import { onAgentFiles, onListFiles, onPlanFiles } from './registry/on-model-files.ts';
import * as models from './registry/on-models.ts';
import { onModelTiers, onStoreTiers } from './registry/on-tiers.ts';
import { openModelContext } from './registry/open-model-context.ts';
import { publishRelease } from './registry/publish-release.ts';
import { moveTiers } from './registry/tiers.ts';
import { onRetention } from './retention/on-retention.ts';
import { currentSettings } from './settings.ts';
import { storageAccountOf } from './store/account.ts';
import { type BlobReference, registerReferences } from './store/blob-reference.ts';
import { NOTICES, notice } from './store/notices.ts';
import { openStores } from './store/stores.ts';
import { openTable } from './store/table-rows.ts';

/** Longest wait for the creation of the logs' containers; after it functions start without them and retry. */
const AUDIT_START_MS = 5_000;

const settings = currentSettings();
const stores = openStores(settings);
const logContext = await openLogContext(settings);
const reports = logContext && openReports(logContext, settings);
const jobContext: HttpContext = {
  ...stores,
  audit: reports?.reporter,
  settings,
  now: () => Date.now(),
  log: (line) => console.log(JSON.stringify(line)),
};
const storage = storageAccountOf(settings);
const privacyTables = {
  rows: openTable(storage, 'auditindex'),
  // Exports of an earlier deployment may be stored even where none are made now.
  exports: openTable(storage, 'exports'),
};
const exportContext = logContext && reports && openExports(logContext, settings, privacyTables.exports, reports);
const privacyContext = logContext && reports && openPrivacy(logContext, { ...privacyTables, ...reports });
const ticking = logContext && openTicker(logContext);
const isUnderLegalHold = logContext && (() => isAnyHeld(logContext.store, logContext.zones));
const modelContext = openModelContext(settings, stores.blobs, { audit: reports?.reporter, isUnderLegalHold });
const post = createPost(settings.MODE === 'development');
registerReferences();
// Creates containers, tables and queues of a fresh account. The health check reports an account that does not answer.
app.hook.appStart(async () => void (await onHealth(stores, (line) => console.error(line))));

const http = { authLevel: 'anonymous' } as const;
/** Events with names of blobs. Flex Consumption has no other source of blob triggers. */
const blob = { connection: 'STORAGE_CONNECTION', source: 'EventGrid', sdkBinding: true } as const;

app.http('health', {
  ...http,
  route: 'health',
  methods: ['GET'],
  // `?stores`, the probe of the edge's circuit breaker, skips the logs.
  handler: (request, context) =>
    onHealth(
      stores,
      (line) => context.warn(line),
      undefined,
      request.query.has('stores')
        ? undefined
        : () => readLogsHealth(logContext && { ...logContext, rows: privacyTables.rows }),
    ),
});

type Route = readonly [
  name: string,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  route: string,
  handler: (request: HttpRequest) => Promise<HttpResponseInit>,
];

const upload = 'uploads/{tenant}/{id}';
const uploads = uploadHandlers(jobContext);
const uploadRoutes: readonly Route[] = [
  ['upload-grant', 'POST', 'uploads', uploads.create],
  ['upload-list', 'GET', 'uploads/{tenant}', uploads.list],
  ['upload-see', 'GET', upload, uploads.get],
  ['upload-cancel', 'DELETE', upload, uploads.cancel],
  ['upload-events', 'GET', `${upload}/events`, uploads.events],
  ['upload-rerun', 'POST', `${upload}/rerun`, uploads.rerun],
  ['upload-open', 'POST', `${upload}/open`, uploads.open],
];

const project = 'projects/{tenant}/{id}';
const projects = projectHandlers(jobContext);
const projectRoutes: readonly Route[] = [
  ['project-make', 'POST', 'projects', projects.create],
  ['project-list', 'GET', 'projects/{tenant}', projects.list],
  ['project-see', 'GET', project, projects.get],
  ['project-delete', 'DELETE', project, projects.cancel],
  ['project-events', 'GET', `${project}/events`, projects.events],
  ['project-rerun', 'POST', `${project}/rerun`, projects.rerun],
  ['document-open', 'POST', `${project}/documents/{document}/open`, projects.openDocument],
  ['segment-edit', 'PUT', `${project}/documents/{document}/segments/{segment}`, projects.editSegment],
];

const model = 'models/{model}';
const modelRoutes: readonly Route[] = [
  ['model-list', 'GET', 'models', models.onModels(modelContext)],
  ['model-see', 'GET', model, models.onModel(modelContext)],
  ['model-tiers', 'GET', `${model}/tiers`, onModelTiers(modelContext)],
  ['tier-list', 'GET', 'tiers', onStoreTiers(modelContext)],
  ['model-register', 'POST', `${model}/revisions`, models.onRevision(modelContext)],
  ['model-revision', 'GET', `${model}/revisions/{revision}`, models.onSeeRevision(modelContext)],
  ['model-retire', 'DELETE', `${model}/revisions/{revision}`, models.onRetire(modelContext)],
  ['model-files', 'GET', `${model}/revisions/{revision}/files`, onListFiles(modelContext)],
  ['model-plan', 'POST', `${model}/revisions/{revision}/files`, onPlanFiles(modelContext)],
  ['model-evidence', 'GET', `${model}/revisions/{revision}/evidence`, models.onEvidence(modelContext)],
  ['model-move', 'POST', `${model}/transitions`, models.onTransition(modelContext)],
  ['model-log', 'GET', `${model}/transitions`, models.onLog(modelContext)],
  ['model-statement', 'GET', `${model}/transitions/{id}`, models.onSeeTransition(modelContext)],
  ['model-alias', 'PUT', `${model}/aliases/{alias}`, models.onAlias(modelContext)],
  ['name-list', 'GET', 'names', models.onNames(modelContext)],
  ['name-set', 'POST', 'names', models.onSetName(modelContext)],
];

/** Calls of agents, and of operators through the edge. */
const jobRoutes: readonly Route[] = [
  ['job-open', 'POST', 'jobs/open', (request) => onOpenJob(jobContext, request)],
  ['agent-live', 'POST', 'agents/live', onLive(modelContext)],
  ['agent-models', 'POST', 'agents/models', onAgentFiles(modelContext)],
  ['agent-demand', 'GET', 'agents/demand', (request) => onDemand(jobContext, request)],
  ['job-replay', 'POST', 'jobs/replay', (request) => onReplay(jobContext, request)],
];

const exported = 'audit/exports/{zone}/{tenant}/{id}';
const noteStream: Parameters<typeof onStream>[1] = async (zone, { tenant, subject }) =>
  reports?.reads.note({ zone, tenant, subject, action: 'stream' });
const auditRoutes: readonly Route[] = [
  [
    'audit-events',
    'POST',
    'audit/{zone}/events',
    onEvents(logContext, (zone, delivery) => noteDemand(jobContext, zone, delivery)),
  ],
  [
    ...(['audit-health', 'GET', 'audit/{zone}/health'] as const),
    onLogHealth(logContext, privacyTables.rows, () => findFullStores(stores)),
  ],
  ['audit-logs', 'GET', 'audit/log/{zone}', onYears(logContext, reports?.reads)],
  ['audit-log', 'GET', 'audit/log/{zone}/{year}/{*path}', onLog(logContext, reports?.reads)],
  ['audit-erase', 'POST', 'audit/{zone}/erasures', erasing.onErase(privacyContext)],
  ['audit-erasures', 'GET', 'audit/{zone}/erasures', erasing.onErasures(privacyContext)],
  ['audit-hold', 'POST', 'audit/{zone}/holds', erasing.onHold(privacyContext)],
  ['audit-holds', 'GET', 'audit/{zone}/holds', erasing.onHolds(privacyContext)],
  ['audit-release', 'POST', 'audit/{zone}/holds/{id}/release', erasing.onRelease(privacyContext)],
  ['audit-gaps', 'GET', 'audit/{zone}/gaps', onGaps(privacyContext)],
  ['audit-accept', 'POST', 'audit/{zone}/gaps/accept', onAcceptGap(privacyContext)],
  ['audit-search', 'POST', 'audit/{zone}/search', onSearch(privacyContext)],
  ['export-make', 'POST', 'audit/exports/{zone}', exports.onCreate(exportContext)],
  ['export-list', 'GET', 'audit/exports/{zone}/{tenant}', exports.onList(exportContext)],
  ['export-see', 'GET', exported, exports.onSee(exportContext)],
  ['export-file', 'GET', `${exported}/files/{*path}`, exports.onFile(exportContext)],
  ['audit-stream', 'GET', 'audit/stream/{zone}/{tenant}', onStream(exportContext, noteStream)],
];

for (const routes of [uploadRoutes, projectRoutes, modelRoutes, jobRoutes, auditRoutes])
  for (const [name, method, route, handler] of routes) app.http(name, { ...http, route, methods: [method], handler });

// Events of storage.
app.storageBlob('on-upload', {
  ...blob,
  path: 'uploads/{name}',
  handler: (reference: unknown) => admitFile(jobContext, (reference as BlobReference).name),
});
app.storageBlob('on-outcome', {
  ...blob,
  path: 'outcomes/{name}',
  handler: (reference: unknown) => takeOutcome(jobContext, (reference as BlobReference).name),
});

// Messages of the queue of notices.
app.storageQueue('on-notice', {
  connection: 'STORAGE_CONNECTION',
  queueName: NOTICES,
  handler: (message: unknown) => deliver(jobContext, post, notice.parse(message)),
});

// Timers.
app.timer('on-stalled', { schedule: '0 * * * * *', handler: () => onStalled(jobContext) });
app.timer('on-lost', { schedule: '20,40 * * * * *', handler: () => onLost(jobContext) });
if (modelContext) {
  app.storageBlob('on-model-upload', {
    ...blob,
    path: 'model-uploads/{name}',
    handler: async (reference: unknown) => void (await hashUpload(modelContext, (reference as BlobReference).name)),
  });
  app.timer('on-model-uploads', { schedule: '45 * * * * *', handler: () => hashForgotten(modelContext) });
  app.timer('on-tiers', { schedule: '15 */5 * * * *', handler: async () => void (await moveTiers(modelContext)) });
  app.timer('on-live', { schedule: '*/10 * * * * *', handler: () => evaluateLive(modelContext) });
  app.timer('on-release', { schedule: '30 * * * * *', handler: async () => void (await publishRelease(modelContext)) });
  app.hook.appStart(() => modelContext.rows.ensure(AbortSignal.timeout(AUDIT_START_MS)).catch(() => {}));
}
if (logContext && ticking && reports) {
  app.hook.appStart(async () => {
    await logContext.store.ensure(AbortSignal.timeout(AUDIT_START_MS)).catch(() => {});
    await reports.start();
  });
  app.hook.appTerminate(async () => {
    await reports.stop();
    await ticking.release();
  });
  app.timer('on-audit', { schedule: '* * * * * *', handler: () => ticking.tick() });
  app.timer('on-witness', { schedule: '*/2 * * * * *', handler: openWitnessing(logContext) });
}
if (logContext && privacyContext) {
  for (const table of Object.values(privacyTables))
    app.hook.appStart(() => table.ensure(AbortSignal.timeout(AUDIT_START_MS)).catch(() => {}));
  app.timer('on-retention', { schedule: '20 */5 * * * *', handler: () => onRetention(privacyContext) });
  app.timer('on-index', { schedule: '*/3 * * * * *', handler: openIndexing(logContext, privacyContext) });
}
if (exportContext) {
  app.timer('on-export', { schedule: '*/2 * * * * *', handler: () => advanceExports(exportContext) });
}
