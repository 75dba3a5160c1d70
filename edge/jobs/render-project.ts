import { z } from 'zod';
import {
  type DocumentRow,
  type ProjectGrant,
  type ProjectRow,
  projectStatuses,
} from '../../shared/jobs/project-contract.ts';
import { uploadStatuses } from '../../shared/jobs/state.ts';
import { publicText, type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { attempts, renderAttempts, renderWaiting, waitingStatus } from './render-upload.ts';

const time = z.iso.datetime().describe('RFC 3339, UTC');
const error = z.object({ code: z.string(), message: z.string() });
const count = z.object({ total: z.number().int(), done: z.number().int() });

const documentStatus = z.object({
  index: z.number().int(),
  id: z.string().describe('Goes into the head of a sealed file'),
  title: z.string().optional(),
  status: z.enum(uploadStatuses),
  edition: z.number().int().describe('Rises with every change of a segment'),
  segments: count,
  blocks: z.array(count).describe('Segments of each block'),
  seconds: z.number().optional().describe('Seconds of audio'),
  error: error.optional(),
  audio: z.enum(['none', 'held', 'deleted']),
  waiting: waitingStatus.optional(),
});

const zoneKeyShown = z.object({ kid: z.string(), jwk: z.record(z.string(), z.string()) });

/** Status of a project for its owner: parameters and progress, never its text. */
export const projectStatus = z.object({
  object: z.literal('project'),
  id: z.string(),
  status: z.enum(projectStatuses),
  title: z.string().optional(),
  model: z.string(),
  voice: z.string().optional(),
  rate: z.number().optional(),
  language: z.string().optional(),
  gaps: z.object({ segment_ms: z.number().int(), block_ms: z.number().int() }),
  tenant: z.string().describe('Goes into the head of a sealed file'),
  zone: z.string(),
  zone_key: zoneKeyShown.optional().describe('Zone key to which changes are sealed'),
  created: time,
  updated: time,
  ended: time.optional(),
  seconds: z.number().optional().describe('Seconds of audio in all documents'),
  documents: z.array(documentStatus),
  error: error.optional(),
  callback: z.enum(['none', 'pending', 'delivered', 'failed']),
  callback_attempts: attempts.optional(),
  waiting: waitingStatus.optional(),
  run: z.number().int().describe('Rises with each end; a change starts another run'),
  seq: z.number().int().describe('Rises with every change'),
});
export type ProjectStatus = z.infer<typeof projectStatus>;

export const listedProjects = z.object({
  object: z.literal('list'),
  data: z.array(projectStatus),
  next: z.string().optional().describe('`after` of the next page'),
});

/** Answer to `POST /v1/projects`. */
export const createdProject = projectStatus.extend({
  status_url: z.string(),
  webhook_secret: z.string().optional().describe('Checks the notices to the callback'),
  grants: z
    .array(
      z.object({
        id: z.string().describe('Goes into the head of the sealed file, with the tenant and the name `upload`'),
        url: z.string().describe('Address to PUT the document to; a secret until it expires'),
        headers: z.record(z.string(), z.string()),
        expires: time,
        max_bytes: z.number().int(),
      }),
    )
    .optional()
    .describe('Of the sealed documents, in their order'),
});

const iso = (at: number) => new Date(at).toISOString();

const fault = (refusal: { reason: Reason; params?: Refusal['params'] | undefined } | undefined) =>
  refusal && {
    error: { code: refusal.reason, message: publicText(refuse(refusal.reason, refusal.params)) },
  };

export function renderProject(row: ProjectRow): ProjectStatus {
  const { id, status, model, language, tenant, zone, zoneKey, seconds, run, seq, project } = row;
  const { title, voice, rate, gaps } = project;
  return {
    object: 'project',
    id,
    status,
    ...(title !== undefined && { title }),
    model,
    ...(voice !== undefined && { voice }),
    ...(rate !== undefined && { rate }),
    ...(language !== undefined && { language }),
    gaps: { segment_ms: gaps.segment, block_ms: gaps.block },
    tenant,
    zone,
    ...(zoneKey && { zone_key: zoneKey }),
    created: iso(row.created),
    updated: iso(row.updated),
    ...(row.ended !== undefined && { ended: iso(row.ended) }),
    ...(seconds !== undefined && { seconds }),
    documents: row.documents.map(renderDocument),
    ...fault(row.refusal),
    callback: row.notice,
    ...renderAttempts(row),
    ...renderWaiting(row),
    run,
    seq,
  };
}

function renderDocument(row: DocumentRow): ProjectStatus['documents'][number] {
  const { index, id, title, status, edition, segments, segmentsDone, blocks, seconds, refusal, audio } = row;
  return {
    index,
    id,
    ...(title !== undefined && { title }),
    status,
    edition,
    segments: { total: segments, done: segmentsDone },
    blocks: blocks.map((block) => ({ total: block.segments, done: block.done })),
    ...(seconds !== undefined && { seconds }),
    ...fault(refusal),
    audio,
    ...renderWaiting(row),
  };
}

export function renderCreatedProject(
  { project, documents, webhookSecret }: ProjectGrant,
  origin: string,
  sealed: boolean,
): z.infer<typeof createdProject> {
  return {
    ...renderProject(project),
    status_url: `${origin}/v1/projects/${project.id}`,
    ...(webhookSecret !== undefined && { webhook_secret: webhookSecret }),
    ...(sealed && {
      grants: documents.map(({ id, url, headers, expires, maxBytes }) => ({
        id,
        url,
        headers,
        expires: iso(expires),
        max_bytes: maxBytes,
      })),
    }),
  };
}
