import { limits } from '../../shared/limits.ts';
import { type ProjectRow, projectList, projectRow } from '../../shared/project/contract.ts';
import { isProjectId } from '../../shared/project/id.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { admit } from '../tenant/admit.ts';
import { askAboutProject } from '../upload/find-upload.ts';
import { follow } from '../upload/follow.ts';
import { inSession, readLists, readPage } from '../upload/look-at-uploads.ts';
import { SCOPE } from './create-project.ts';
import { tellProject } from './tell-project.ts';

const fresh = { 'cache-control': 'no-store' };

/** `GET /v1/projects/{id}` */
export async function showProject(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  return answerProject(await askAboutProject(id, { method: 'GET' }, projectRow, claims.value, context));
}

/** `GET /v1/projects?after=ID&limit=N`, newest first. */
export async function listProjects(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { searchParams } = new URL(request.url);
  const query = readPage(searchParams, isProjectId, limits.projectListRows.value);
  const page = query.ok ? await readAll(query.value, claims.value, context) : query;
  if (!page.ok) return refuseWith(page.refusal);
  const { rows, next } = page.value;
  return Response.json({ object: 'list', data: rows.map(tellProject), ...(next && { next }) }, { headers: fresh });
}

const readAll = (page: Parameters<typeof readLists>[0], claims: Claims, context: RequestContext) =>
  readLists<ProjectRow, typeof projectList>(page, claims, context, {
    root: '/projects',
    schema: projectList,
    rowsOf: ({ projects }) => projects,
  });

/** `GET /v1/projects/{id}/events`: server-sent events, one for each change, until the project has ended. */
export async function followProject(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  return follow<ProjectRow>(request, {
    tenant: claims.value.tenant,
    now: () => context.surroundings.now(),
    look: (after, waitSeconds, signal) => {
      const below = `/events?after=${after}&wait=${waitSeconds}`;
      return askAboutProject(id, { method: 'GET', below, waitSeconds, signal }, projectRow, claims.value, context);
    },
    isOver: ({ status }) => status !== 'working',
    tell: tellProject,
  });
}

/** `DELETE /v1/projects/{id}`: cancels the project and deletes its data. */
export async function deleteProject(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const ask = (claims: Claims) => askAboutProject(id, { method: 'DELETE' }, projectRow, claims, context);
  return answerProject(await inSession(request, context, { scope: SCOPE, action: 'project.delete' }, ask));
}

/** `POST /v1/projects/{id}/rerun`: repeats failed work; synthesised audio stays. */
export async function rerunProject(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const ask = (claims: Claims) => askAboutProject(id, { method: 'POST', below: '/rerun' }, projectRow, claims, context);
  return answerProject(await inSession(request, context, { scope: SCOPE, action: 'project.rerun' }, ask));
}

export function answerProject(found: Result<{ readonly value: ProjectRow | undefined }>, status = 200): Response {
  const row = found.ok ? said(found.value.value) : found;
  return row.ok ? Response.json(tellProject(row.value), { status, headers: fresh }) : refuseWith(row.refusal);
}

const said = (row: ProjectRow | undefined): Result<ProjectRow> =>
  row ? ok(row) : no(refuse('uploads_unavailable', undefined, 'nothing was said'));
