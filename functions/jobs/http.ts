// HTTP calls of the edge about jobs. Uploads (transcription) and projects (speech) share their handlers; each call is
// verified first, and is about the tenant of its token only.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import {
  PROJECT_DOCUMENTS_MAX,
  PROJECT_LIST_ROWS_MAX,
  PROJECT_SEGMENTS_MAX,
  UPLOAD_LIST_ROWS_MAX,
} from '../../shared/jobs/limits.ts';
import { isUploadId, type UploadPlace } from '../../shared/jobs/paths.ts';
import { newProject, newSegment } from '../../shared/jobs/project-contract.ts';
import { isProjectId } from '../../shared/jobs/project-id.ts';
import { newUpload } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { ok, type Result } from '../../shared/result.ts';
import { type EdgeHandler, fromEdge } from '../caller/from-edge.ts';
import { answer, answerNo, answerResult, answerUnlike } from '../http/answer.ts';
import { readCount } from '../http/read-count.ts';
import { readJson } from '../http/read-json.ts';
import type { Settings } from '../settings.ts';
import type { JobContext } from './context.ts';
import { createProject } from './create-project.ts';
import { editSegment } from './edit-segment.ts';
import { grantUpload } from './grant-upload.ts';
import { longPoll } from './long-poll.ts';
import * as projects from './projects.ts';
import * as uploads from './uploads.ts';
import { isVisible, type PageQuery } from './visibility.ts';

export type HttpContext = JobContext & { readonly settings: Settings };

type OfOne<Row> = (context: JobContext, place: UploadPlace) => Promise<Result<Row>>;

interface JobKind<Request extends { readonly tenant: string }> {
  readonly isId: (id: string) => boolean;
  /** Refusal of ids that the caller may not see or that do not exist. */
  readonly unknown: 'upload_unknown' | 'project_unknown';
  readonly body: z.ZodType<Request>;
  /** Rows of one page at most. */
  readonly pageRows: number;
  readonly create: (context: JobContext, request: Request) => Promise<Result<unknown>>;
  readonly list: (context: JobContext, query: PageQuery) => Promise<unknown>;
  readonly get: OfOne<{ readonly seq: number }>;
  /** `get`, with what the job waits for. */
  readonly inspect: OfOne<unknown>;
  readonly cancel: OfOne<unknown>;
  readonly rerun: OfOne<unknown>;
}

/** Answers about one job. Those of other tenants, owners or zones than the caller's are unknown, as missing ones are. */
const aboutOne =
  (context: HttpContext, { isId, unknown }: Pick<JobKind<never>, 'isId' | 'unknown'>) =>
  (then: (place: UploadPlace, request: HttpRequest) => Promise<HttpResponseInit>): EdgeHandler =>
    fromEdge(ok(context), async (request, caller) => {
      const { tenant = '', id = '' } = request.params;
      const known = tenant === caller.tenant && isId(id) && (await isVisible(context, { tenant, id }, caller));
      return known ? then({ tenant, id }, request) : answerNo(refuse(unknown));
    });

function handlersOf<Request extends { readonly tenant: string }>(context: HttpContext, kind: JobKind<Request>) {
  const { unknown, body, pageRows, isId } = kind;
  const about = aboutOne(context, kind);
  const answering = (act: OfOne<unknown>) => about(async (place) => answerResult(await act(context, place)));
  return {
    create: fromEdge(ok(context), async (request, caller) => {
      const parsed = body.safeParse(await readJson(request));
      if (!parsed.success) return answerUnlike(parsed.error);
      if (parsed.data.tenant !== caller.tenant) return answerNo(refuse(unknown));
      return answerResult(await kind.create(context, parsed.data), 201);
    }),
    list: fromEdge(ok(context), async (request, caller) => {
      const { tenant = '' } = request.params;
      if (tenant !== caller.tenant) return answerNo(refuse(unknown));
      const after = request.query.get('after') ?? undefined;
      if (after !== undefined && !isId(after))
        return answerNo(refuse('field_invalid', { field: 'after', rule: 'it is not an id of this kind' }));
      const limit = Math.min(pageRows, Math.max(1, readCount(request, 'limit') ?? pageRows));
      return answer(200, await kind.list(context, { tenant, after, limit, viewer: caller }));
    }),
    get: answering(kind.inspect),
    /** Answers with the row once it is newer than `after`, else 204. */
    events: about((place, request) => longPoll(context, place, () => kind.get(context, place), request)),
    cancel: answering(kind.cancel),
    rerun: answering(kind.rerun),
    about,
  };
}

export function uploadHandlers(context: HttpContext) {
  const { about, ...handlers } = handlersOf(context, {
    ...{ isId: isUploadId, unknown: 'upload_unknown', body: newUpload, pageRows: UPLOAD_LIST_ROWS_MAX },
    ...{ create: grantUpload, list: uploads.listUploads, get: uploads.getUpload, inspect: uploads.inspectUpload },
    ...{ cancel: uploads.cancelUpload, rerun: uploads.rerunUpload },
  });
  return { ...handlers, open: about(async (place) => answerResult(await uploads.openTranscript(context, place))) };
}

export function projectHandlers(context: HttpContext) {
  const { about, ...handlers } = handlersOf(context, {
    ...{ isId: isProjectId, unknown: 'project_unknown', body: newProject, pageRows: PROJECT_LIST_ROWS_MAX },
    ...{ create: createProject, list: projects.listProjects, get: projects.getProject },
    ...{ inspect: projects.inspectProject, cancel: projects.deleteProject, rerun: projects.rerunProject },
  });
  return {
    ...handlers,
    openDocument: about(async (place, { params }) => {
      const document = readIndex(params.document, PROJECT_DOCUMENTS_MAX);
      if (document === undefined) return answerNo(refuse('document_unknown'));
      return answerResult(await projects.openDocument(context, place, document));
    }),
    editSegment: about(async (place, request) => {
      const document = readIndex(request.params.document, PROJECT_DOCUMENTS_MAX);
      if (document === undefined) return answerNo(refuse('document_unknown'));
      const segment = readIndex(request.params.segment, PROJECT_SEGMENTS_MAX);
      if (segment === undefined) return answerNo(refuse('segment_unknown'));
      const parsed = newSegment.safeParse(await readJson(request));
      if (!parsed.success) return answerUnlike(parsed.error);
      return answerResult(await editSegment(context, place, { document, segment }, parsed.data));
    }),
  };
}

/** Reads a decimal index without leading zeros. */
const readIndex = (text: string | undefined, most: number): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,3})$/.test(text) && Number(text) < most ? Number(text) : undefined;
