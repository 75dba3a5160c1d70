import { z } from 'zod';
import { exportStatus, streamedLeaf } from '../shared/audit/bundle/contract.ts';
import { auditHealth } from '../shared/audit/health.ts';
import { manifest } from '../shared/jobs/project-manifest.ts';
import { bookedUsage, uploadUsage } from '../shared/jobs/usage.ts';
import {
  aliasRow,
  liveEvidence,
  logPage,
  modelState,
  nameRow,
  newRevision,
  newTransition,
  revisionRow,
  storedRevision,
  storedTransition,
  transitionRow,
} from '../shared/registry/contract.ts';
import { fileList, filePlan, newFiles } from '../shared/registry/model-files.ts';
import { namedModel } from '../shared/registry/names.ts';
import { sentRelease } from '../shared/registry/release.ts';
import { modelTiers, storeTiers } from '../shared/registry/tiers.ts';
import { transcription, verboseTranscription } from '../shared/speech/openai-answer.ts';
import { repeatedFields, transcriptionFields } from '../shared/speech/openai-form.ts';
import {
  erasureBody,
  holdBody,
  holdReleaseBody,
  listedErased,
  listedHolds,
  listedReleased,
  listedWaiting,
} from './audit/erase.ts';
import { exportBody, listedExports } from './audit/exports.ts';
import { acceptBody, acceptedGap, listedGaps } from './audit/gaps.ts';
import { listedLog } from './audit/read-log.ts';
import { listedHits } from './audit/search.ts';
import { errorBody } from './http/error-body.ts';
import { listedUsage } from './jobs/list-usage.ts';
import { projectBody, segmentBody } from './jobs/project-body.ts';
import { createdProject, listedProjects, projectStatus } from './jobs/render-project.ts';
import { grantedUpload, listedUploads, uploadStatus } from './jobs/render-upload.ts';
import { replayedJobs } from './jobs/replay-jobs.ts';
import { uploadBody } from './jobs/upload-body.ts';
import { outboxPage } from './ledger/outbox.ts';
import { kserveSchemas } from './openapi/kserve-schemas.ts';
import { paths } from './openapi/paths.ts';
import { rateLimitComponents, withRateLimits } from './openapi/rate-limit.ts';
import { input, output } from './openapi/values.ts';
import { recordingAnswer } from './protocol/deepgram-answer.ts';
import { deepgramError } from './protocol/deepgram-refuse.ts';
import { clientSecretBody, grantBody } from './protocol/grant-request.ts';
import { clientSecretAnswer, grantAnswer } from './protocol/issue-tokens.ts';
import { sessionBody } from './protocol/openai-realtime-session.ts';
import { speakBody, speechBody } from './protocol/speech-request.ts';
import { describedVersion, listedVersions, statusAnswer, torchserveError } from './protocol/torchserve.ts';
import { edgeHealth, listedModel } from './registry/list-models.ts';
import { aliasBody } from './registry/model-routes.ts';
import { nameBody } from './registry/names.ts';
import { routeDecision } from './routing/decision.ts';
import { drainBody, drainedPool } from './routing/drain-pool.ts';
import { listedPools } from './routing/list-pools.ts';
import { knownReleases, publishedRelease } from './routing/release.ts';
import { listedVoices } from './speak/list-voices.ts';

function transcriptionBody() {
  const fields = input(transcriptionFields) as { properties: Record<string, unknown> };
  const repeated = input(repeatedFields) as { properties: Record<string, unknown> };
  const { timestamp_granularities } = repeated.properties;
  return {
    type: 'object',
    required: ['file', 'model'],
    properties: {
      file: {
        type: 'string',
        format: 'binary',
        description: 'WAV, AIFF, FLAC, MP3, Ogg or WebM (Opus, Vorbis), MP4 or M4A (AAC-LC, Opus), AAC (ADTS), AMR',
      },
      ...fields.properties,
      'timestamp_granularities[]': timestamp_granularities,
    },
  };
}

const list = (item: z.ZodType) => output(z.object({ object: z.literal('list'), data: z.array(item) }));

/** Releases, revisions, transitions and aliases of models. */
function modelSchemas() {
  return {
    ModelState: output(modelState),
    ReleaseRequest: input(sentRelease),
    ToldRelease: output(publishedRelease),
    KnownReleases: output(knownReleases),
    RevisionRequest: input(newRevision),
    Revision: output(revisionRow),
    KeptRevision: output(storedRevision),
    LiveEvidence: output(liveEvidence),
    ModelFiles: output(fileList),
    ModelFilesRequest: input(newFiles),
    ModelFilePlan: output(filePlan),
    ModelTiers: output(modelTiers),
    StoreTiers: output(storeTiers),
    TransitionRequest: input(newTransition),
    Transition: output(transitionRow),
    KeptTransition: output(storedTransition),
    ModelLog: output(logPage),
    NameRequest: input(nameBody),
    Name: output(nameRow),
    NameList: list(namedModel),
    AliasRequest: input(aliasBody),
    Alias: output(aliasRow),
    AliasList: list(aliasRow),
    TorchserveModels: output(listedVersions),
    TorchserveVersions: output(z.array(describedVersion)),
    TorchserveStatus: output(statusAnswer),
    TorchserveError: output(torchserveError),
  };
}

/** The audit log: outboxes, gaps, holds, erasures and exports. */
function auditSchemas() {
  return {
    OutboxPage: output(outboxPage),
    AuditHealth: output(auditHealth),
    AuditLogList: list(listedLog),
    AuditErasureRequest: input(erasureBody),
    AuditErased: output(listedErased),
    AuditErasureList: output(listedWaiting),
    AuditHoldRequest: input(holdBody),
    AuditReleaseRequest: input(holdReleaseBody),
    AuditReleased: output(listedReleased),
    AuditHoldList: output(listedHolds),
    AuditGapList: output(listedGaps),
    AuditGapAcceptance: input(acceptBody),
    AuditGap: output(acceptedGap),
    AuditHits: output(listedHits),
    AuditExportRequest: input(exportBody),
    AuditExport: output(exportStatus),
    AuditExportList: output(listedExports),
    AuditStreamed: output(streamedLeaf),
  };
}

/** Uploads and projects. */
function jobSchemas() {
  return {
    UploadRequest: input(uploadBody),
    UploadGrant: output(grantedUpload),
    Upload: output(uploadStatus),
    ReplayedJobs: output(replayedJobs),
    UploadUsage: input(uploadUsage),
    BookedUsage: output(bookedUsage),
    UploadList: output(listedUploads),
    ProjectRequest: input(projectBody),
    MadeProject: output(createdProject),
    Project: output(projectStatus),
    ProjectList: output(listedProjects),
    ProjectManifest: output(manifest),
    SegmentRequest: input(segmentBody),
  };
}

function describe() {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Auricle',
      version: '0.1.0',
      description: 'Speech inference on your own pools. Compatible with the official OpenAI clients.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths: withRateLimits(paths()),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      headers: {
        Degraded: {
          description:
            'Level of a degraded pool: 1 features off, 2 8 kHz sound, 3 cached results; absent at full quality',
          schema: { type: 'integer', minimum: 1, maximum: 3 },
        },
        CacheStatus: {
          description: 'RFC 9211, `auricle; hit`: a degraded pool sent the stored transcript of the same recording',
          schema: { type: 'string' },
        },
        RequestId: { description: 'Id of the request in logs and audit', schema: { type: 'string' } },
        RetryAfter: { description: 'Seconds after which to try again', schema: { type: 'integer' } },
        ...rateLimitComponents,
      },
      schemas: {
        Health: output(edgeHealth),
        TranscriptionRequest: transcriptionBody(),
        Transcription: output(transcription),
        VerboseTranscription: output(verboseTranscription),
        SpeechRequest: input(speechBody),
        SpeakRequest: input(speakBody),
        VoiceList: output(listedVoices),
        Model: output(listedModel),
        ModelList: list(listedModel),
        ...modelSchemas(),
        PoolList: output(listedPools),
        UsageList: output(listedUsage),
        RouteDecision: output(routeDecision),
        DrainRequest: input(drainBody),
        DrainedPool: output(drainedPool),
        ...auditSchemas(),
        ...jobSchemas(),
        Error: output(errorBody),
        GrantRequest: input(grantBody),
        Grant: output(grantAnswer),
        ClientSecretRequest: input(clientSecretBody.extend({ session: sessionBody.optional() })),
        ClientSecret: output(clientSecretAnswer),
        DeepgramRecording: output(recordingAnswer),
        DeepgramError: output(deepgramError),
        ...kserveSchemas,
      },
    },
  };
}

/** Document of this isolate, built at the first request. */
let document: string | undefined;

/** `GET /v1/openapi.json`: generated from the schemas that requests are read with and answers are typed by. */
export function describeApi(): Response {
  document ??= JSON.stringify(describe());
  return new Response(document, { headers: { 'content-type': 'application/json' } });
}
