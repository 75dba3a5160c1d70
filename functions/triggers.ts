// All triggers of the back office. The only file that uses the functions library's `app`.

import { app, type InvocationContext } from '@azure/functions';
import { limits } from '../shared/limits.ts';
import { openPrivacy } from './audit/erase/erase-desks.ts';
import * as erasing from './audit/erase/on-erase.ts';
import { advanceExports } from './audit/export/advance-export.ts';
import * as exports from './audit/export/on-exports.ts';
import { onStream } from './audit/export/on-stream.ts';
import { openExports } from './audit/export/open-exports.ts';
import { openIndexing, openWitnessing } from './audit/follow-logs.ts';
import { onAcceptGap, onGaps } from './audit/gaps/on-gaps.ts';
import * as audit from './audit/intake/on-audit.ts';
import { openLogDesk } from './audit/log/log-desk.ts';
import { lookAtLogs } from './audit/log/look-at-log.ts';
import { onLog, onYears } from './audit/log/on-log.ts';
import { openTicking } from './audit/log/on-tick.ts';
import { openReports } from './audit/report/reports.ts';
import { onSearch } from './audit/search/on-search.ts';
import { findFullStores, onHealth } from './health/on-health.ts';
import { judgeLive } from './model/judge-live.ts';
import { openModelDesk } from './model/model-desk.ts';
import { onLive } from './model/on-live.ts';
import * as models from './model/on-models.ts';
import { publishRelease } from './model/publish-release.ts';
import * as projects from './project/on-projects.ts';
import { onRetention } from './retention/on-retention.ts';
import { currentSettings } from './settings.ts';
import { type BlobReference, registerReferences } from './store/blob-reference.ts';
import { NOTICES, notice } from './store/notices.ts';
import { openTable } from './store/table-rows.ts';
import { openStores } from './stores.ts';
import { arrive } from './upload/arrive.ts';
import { deliver } from './upload/deliver.ts';
import { onOpenJob, onReplay } from './upload/on-jobs.ts';
import { onLost, onStalled } from './upload/on-timer.ts';
import * as uploads from './upload/on-uploads.ts';
import { createPost } from './upload/post.ts';
import { takeOutcome } from './upload/take-outcome.ts';

const settings = currentSettings();
const stores = openStores(settings);
const logDesk = await openLogDesk(settings);
const reports = logDesk && openReports(logDesk, settings);
const desk: uploads.Desk = {
  ...stores,
  audit: reports?.reporter,
  settings,
  now: () => Date.now(),
  log: (line) => console.log(JSON.stringify(line)),
};
const privacyTables = {
  rows: openTable(settings.STORAGE_CONNECTION, 'auditindex'),
  // Opened even when exports are off: an earlier deployment may have left some.
  exports: openTable(settings.STORAGE_CONNECTION, 'exports'),
};
const exportDesk = logDesk && reports && openExports(logDesk, settings, privacyTables.exports, reports);
const privacyDesk = logDesk && reports && openPrivacy(logDesk, { ...privacyTables, ...reports });
const ticking = logDesk && openTicking(logDesk);
const modelDesk = openModelDesk(settings, reports?.reporter);
const post = createPost(settings.MODE === 'development');
registerReferences();
// Prepares a fresh account before its first request. If storage is unreachable, the health check reports it.
app.hook.appStart(async () => void (await onHealth(stores, (line) => console.error(line))));

const http = { authLevel: 'anonymous' } as const;
/**
 * Triggers get names of blobs, never bytes, by events, never by a scan: the plan that scales to zero has no
 * other source.
 */
const blob = { connection: 'STORAGE_CONNECTION', source: 'EventGrid', sdkBinding: true } as const;

app.http('health', {
  ...http,
  route: 'health',
  methods: ['GET'],
  // With `?stores`, the probe of the edge's circuit breaker, no log is read.
  handler: (request, context) =>
    onHealth(
      stores,
      (line) => context.warn(line),
      undefined,
      request.query.has('stores') ? undefined : () => lookAtLogs(logDesk && { ...logDesk, rows: privacyTables.rows }),
    ),
});

// Calls of the edge.
app.http('upload-grant', { ...http, route: 'uploads', methods: ['POST'], handler: uploads.onGrant(desk) });
app.http('upload-list', { ...http, route: 'uploads/{tenant}', methods: ['GET'], handler: uploads.onList(desk) });
app.http('upload-see', { ...http, route: 'uploads/{tenant}/{id}', methods: ['GET'], handler: uploads.onSee(desk) });
app.http('upload-cancel', {
  ...http,
  route: 'uploads/{tenant}/{id}',
  methods: ['DELETE'],
  handler: uploads.onCancel(desk),
});
app.http('upload-events', {
  ...http,
  route: 'uploads/{tenant}/{id}/events',
  methods: ['GET'],
  handler: uploads.onEvents(desk),
});
app.http('upload-rerun', {
  ...http,
  route: 'uploads/{tenant}/{id}/rerun',
  methods: ['POST'],
  handler: uploads.onRerun(desk),
});
app.http('upload-open', {
  ...http,
  route: 'uploads/{tenant}/{id}/open',
  methods: ['POST'],
  handler: uploads.onOpenTranscript(desk),
});

const ofProject = 'projects/{tenant}/{id}';
app.http('project-make', { ...http, route: 'projects', methods: ['POST'], handler: projects.onMake(desk) });
app.http('project-list', { ...http, route: 'projects/{tenant}', methods: ['GET'], handler: projects.onProjects(desk) });
app.http('project-see', { ...http, route: ofProject, methods: ['GET'], handler: projects.onProject(desk) });
app.http('project-delete', { ...http, route: ofProject, methods: ['DELETE'], handler: projects.onDelete(desk) });
app.http('project-events', {
  ...http,
  route: `${ofProject}/events`,
  methods: ['GET'],
  handler: projects.onProjectEvents(desk),
});
app.http('project-rerun', {
  ...http,
  route: `${ofProject}/rerun`,
  methods: ['POST'],
  handler: projects.onRerunProject(desk),
});
app.http('document-open', {
  ...http,
  route: `${ofProject}/documents/{document}/open`,
  methods: ['POST'],
  handler: projects.onOpenDocument(desk),
});
app.http('segment-edit', {
  ...http,
  route: `${ofProject}/documents/{document}/segments/{segment}`,
  methods: ['PUT'],
  handler: projects.onEdit(desk),
});

// Calls of operators, through the edge.
const ofModel = 'models/{model}';
app.http('model-list', { ...http, route: 'models', methods: ['GET'], handler: models.onModels(modelDesk) });
app.http('model-see', { ...http, route: ofModel, methods: ['GET'], handler: models.onModel(modelDesk) });
app.http('model-register', {
  ...http,
  route: `${ofModel}/revisions`,
  methods: ['POST'],
  handler: models.onRevision(modelDesk),
});
app.http('model-revision', {
  ...http,
  route: `${ofModel}/revisions/{revision}`,
  methods: ['GET'],
  handler: models.onSeeRevision(modelDesk),
});
app.http('model-retire', {
  ...http,
  route: `${ofModel}/revisions/{revision}`,
  methods: ['DELETE'],
  handler: models.onRetire(modelDesk),
});
app.http('model-evidence', {
  ...http,
  route: `${ofModel}/revisions/{revision}/evidence`,
  methods: ['GET'],
  handler: models.onEvidence(modelDesk),
});
app.http('model-move', {
  ...http,
  route: `${ofModel}/transitions`,
  methods: ['POST'],
  handler: models.onTransition(modelDesk),
});
app.http('model-log', {
  ...http,
  route: `${ofModel}/transitions`,
  methods: ['GET'],
  handler: models.onLog(modelDesk),
});
app.http('model-statement', {
  ...http,
  route: `${ofModel}/transitions/{id}`,
  methods: ['GET'],
  handler: models.onSeeTransition(modelDesk),
});
app.http('model-alias', {
  ...http,
  route: `${ofModel}/aliases/{alias}`,
  methods: ['PUT'],
  handler: models.onAlias(modelDesk),
});

// Calls of agents, and of operators through the edge.
app.http('job-open', {
  ...http,
  route: 'jobs/open',
  methods: ['POST'],
  handler: (request) => onOpenJob(desk, request),
});
app.http('agent-live', { ...http, route: 'agents/live', methods: ['POST'], handler: onLive(modelDesk) });
app.http('job-replay', {
  ...http,
  route: 'jobs/replay',
  methods: ['POST'],
  handler: (request) => onReplay(desk, request),
});

// Events of blob storage.
app.storageBlob('on-upload', {
  ...blob,
  path: 'uploads/{name}',
  handler: (reference: unknown, _context: InvocationContext) => arrive(desk, (reference as BlobReference).name),
});
app.storageBlob('on-outcome', {
  ...blob,
  path: 'outcomes/{name}',
  handler: (reference: unknown) => takeOutcome(desk, (reference as BlobReference).name),
});

// Messages of our own queue.
app.storageQueue('on-notice', {
  connection: 'STORAGE_CONNECTION',
  queueName: NOTICES,
  handler: (message: unknown) => deliver(desk, post, notice.parse(message)),
});

app.http('audit-events', {
  ...http,
  route: 'audit/{zone}/events',
  methods: ['POST'],
  handler: audit.onEvents(logDesk),
});
app.http('audit-health', {
  ...http,
  route: 'audit/{zone}/health',
  methods: ['GET'],
  handler: audit.onLogHealth(logDesk, privacyTables.rows, () => findFullStores(stores)),
});
app.http('audit-logs', {
  ...http,
  route: 'audit/log/{zone}',
  methods: ['GET'],
  handler: onYears(logDesk, reports?.reads),
});
app.http('audit-log', {
  ...http,
  route: 'audit/log/{zone}/{year}/{*path}',
  methods: ['GET'],
  handler: onLog(logDesk, reports?.reads),
});

for (const [name, methods, route, handler] of [
  ['audit-erase', 'POST', 'erasures', erasing.onErase(privacyDesk)],
  ['audit-erasures', 'GET', 'erasures', erasing.onErasures(privacyDesk)],
  ['audit-hold', 'POST', 'holds', erasing.onHold(privacyDesk)],
  ['audit-holds', 'GET', 'holds', erasing.onHolds(privacyDesk)],
  ['audit-release', 'POST', 'holds/{id}/release', erasing.onRelease(privacyDesk)],
  ['audit-gaps', 'GET', 'gaps', onGaps(privacyDesk)],
  ['audit-accept', 'POST', 'gaps/accept', onAcceptGap(privacyDesk)],
  ['audit-search', 'POST', 'search', onSearch(privacyDesk)],
] as const) {
  app.http(name, { ...http, route: `audit/{zone}/${route}`, methods: [methods], handler });
}

const ofExport = 'audit/exports/{zone}/{tenant}/{id}';
app.http('export-make', {
  ...http,
  route: 'audit/exports/{zone}',
  methods: ['POST'],
  handler: exports.onCreate(exportDesk),
});
app.http('export-list', {
  ...http,
  route: 'audit/exports/{zone}/{tenant}',
  methods: ['GET'],
  handler: exports.onList(exportDesk),
});
app.http('export-see', { ...http, route: ofExport, methods: ['GET'], handler: exports.onSee(exportDesk) });
app.http('export-file', {
  ...http,
  route: `${ofExport}/files/{*path}`,
  methods: ['GET'],
  handler: exports.onFile(exportDesk),
});
app.http('audit-stream', {
  ...http,
  route: 'audit/stream/{zone}/{tenant}',
  methods: ['GET'],
  handler: onStream(exportDesk, async (zone, { tenant, subject }) =>
    reports?.reads.note({ zone, tenant, subject, action: 'stream' }),
  ),
});

// Timers.
app.timer('on-stalled', { schedule: '0 * * * * *', handler: () => onStalled(desk) });
app.timer('on-lost', { schedule: '20,40 * * * * *', handler: () => onLost(desk) });
if (modelDesk) {
  app.timer('on-live', { schedule: '*/10 * * * * *', handler: () => judgeLive(modelDesk) });
  app.timer('on-release', { schedule: '30 * * * * *', handler: async () => void (await publishRelease(modelDesk)) });
  app.hook.appStart(() => modelDesk.rows.ensure(AbortSignal.timeout(limits.auditStartMs.value)).catch(() => {}));
}
if (logDesk && ticking && reports) {
  app.hook.appStart(async () => {
    await logDesk.store.ensure(AbortSignal.timeout(limits.auditStartMs.value)).catch(() => {});
    await reports.start();
  });
  app.hook.appTerminate(async () => {
    await reports.stop();
    await ticking.release();
  });
  app.timer('on-audit', { schedule: '* * * * * *', handler: () => ticking.tick() });
  app.timer('on-witness', { schedule: '*/2 * * * * *', handler: openWitnessing(logDesk) });
}
if (logDesk && privacyDesk) {
  for (const table of Object.values(privacyTables))
    app.hook.appStart(() => table.ensure(AbortSignal.timeout(limits.auditStartMs.value)).catch(() => {}));
  app.timer('on-retention', { schedule: '20 */5 * * * *', handler: () => onRetention(privacyDesk) });
  app.timer('on-index', { schedule: '*/3 * * * * *', handler: openIndexing(logDesk, privacyDesk) });
}
if (exportDesk) {
  app.timer('on-export', { schedule: '*/2 * * * * *', handler: () => advanceExports(exportDesk) });
}
