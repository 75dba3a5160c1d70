// What the edge asks over HTTP about text projects. Verified as questions about uploads are.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { limits } from '../../shared/limits.ts';
import { newProject, newSegment } from '../../shared/project/contract.ts';
import { isProjectId } from '../../shared/project/id.ts';
import { refuse } from '../../shared/refusal.ts';
import type { UploadPlace } from '../../shared/upload/paths.ts';
import { answer, answerNo, answerResult, answerUnlike } from '../answer.ts';
import type { Question } from '../caller/from-edge.ts';
import { readJson } from '../read-json.ts';
import { followNews } from '../upload/follow-news.ts';
import { about, type Desk, verified } from '../upload/on-uploads.ts';
import { readCount } from '../upload/read-count.ts';
import { deleteProject, listProjects, openDocument, rerunProject, seeProject, showProject } from './asked-project.ts';
import { editSegment } from './edit-segment.ts';
import { makeProject } from './make-project.ts';

/** POST /api/projects */
export const onMake = (desk: Desk): Question =>
  verified(desk, async (request, caller) => {
    const asked = newProject.safeParse(await readJson(request));
    if (!asked.success) return answerUnlike(asked.error);
    if (asked.data.tenant !== caller.tenant) return answerNo(refuse('project_unknown'));
    return answerResult(await makeProject(desk, asked.data), 201);
  });

/** GET /api/projects/{tenant} */
export const onProjects = (desk: Desk): Question =>
  verified(desk, async (request, caller) => {
    const { tenant = '' } = request.params;
    if (tenant !== caller.tenant) return answerNo(refuse('project_unknown'));
    const after = request.query.get('after') ?? undefined;
    if (after !== undefined && !isProjectId(after))
      return answerNo(refuse('field_invalid', { field: 'after', rule: 'it is not as agreed' }));
    const most = limits.projectListRows.value;
    const limit = Math.min(most, Math.max(1, readCount(request, 'limit') ?? most));
    return answer(200, await listProjects(desk, { tenant, after, limit, viewer: caller }));
  });

export const onProject = (desk: Desk): Question =>
  ofProject(desk, async (place) => answerResult(await showProject(desk, place)));

/** GET …/events: the row once it is newer, else 204. */
export const onProjectEvents = (desk: Desk): Question =>
  ofProject(desk, (place, request) => followNews(desk, place, () => seeProject(desk, place), request));

export const onDelete = (desk: Desk): Question =>
  ofProject(desk, async (place) => answerResult(await deleteProject(desk, place)));

export const onRerunProject = (desk: Desk): Question =>
  ofProject(desk, async (place) => answerResult(await rerunProject(desk, place)));

export const onOpenDocument = (desk: Desk): Question =>
  ofProject(desk, async (place, request) => {
    const document = readIndex(request.params.document, limits.projectDocuments.value);
    if (document === undefined) return answerNo(refuse('document_unknown'));
    return answerResult(await openDocument(desk, place, document));
  });

export const onEdit = (desk: Desk): Question =>
  ofProject(desk, async (place, request) => {
    const document = readIndex(request.params.document, limits.projectDocuments.value);
    if (document === undefined) return answerNo(refuse('document_unknown'));
    const segment = readIndex(request.params.segment, limits.projectSegments.value);
    if (segment === undefined) return answerNo(refuse('segment_unknown'));
    const asked = newSegment.safeParse(await readJson(request));
    if (!asked.success) return answerUnlike(asked.error);
    return answerResult(await editSegment(desk, place, { document, segment }, asked.data));
  });

const ofProject = (
  desk: Desk,
  then: (place: UploadPlace, request: HttpRequest) => Promise<HttpResponseInit>,
): Question => about(desk, then, isProjectId, 'project_unknown');

/** One spelling for each number. */
const readIndex = (text: string | undefined, most: number): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,3})$/.test(text) && Number(text) < most ? Number(text) : undefined;
