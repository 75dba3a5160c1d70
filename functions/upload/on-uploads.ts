// What the edge asks over HTTP. Every question is verified first, and about the tenant of its token only.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { ok } from '../../shared/result.ts';
import { newUpload } from '../../shared/upload/contract.ts';
import { isUploadId, type UploadPlace } from '../../shared/upload/paths.ts';
import { answer, answerNo, answerResult, answerUnlike } from '../answer.ts';
import type { EdgeCaller } from '../caller/edge-caller.ts';
import { fromEdge, type Question } from '../caller/from-edge.ts';
import { readJson } from '../read-json.ts';
import type { Settings } from '../settings.ts';
import { cancel, list, openTranscript, rerun, see, show } from './asked.ts';
import { followNews } from './follow-news.ts';
import { grant } from './grant.ts';
import type { Office } from './office.ts';
import { isVisible } from './own.ts';
import { readCount } from './read-count.ts';

export type Desk = Office & { readonly settings: Settings };

/** POST /api/uploads */
export const onGrant = (desk: Desk): Question =>
  verified(desk, async (request, caller) => {
    const asked = newUpload.safeParse(await readJson(request));
    if (!asked.success) return answerUnlike(asked.error);
    if (asked.data.tenant !== caller.tenant) return answerNo(refuse('upload_unknown'));
    return answerResult(await grant(desk, asked.data), 201);
  });

/** GET /api/uploads/{tenant} */
export const onList = (desk: Desk): Question =>
  verified(desk, async (request, caller) => {
    const { tenant = '' } = request.params;
    if (tenant !== caller.tenant) return answerNo(refuse('upload_unknown'));
    const after = request.query.get('after') ?? undefined;
    if (after !== undefined && !isUploadId(after))
      return answerNo(refuse('field_invalid', { field: 'after', rule: 'it is not the id of an upload' }));
    const most = limits.uploadListRows.value;
    const limit = Math.min(most, Math.max(1, readCount(request, 'limit') ?? most));
    return answer(200, await list(desk, { tenant, after, limit, viewer: caller }));
  });

export const onSee = (desk: Desk): Question => about(desk, async (place) => answerResult(await show(desk, place)));

/** GET …/events: the row once it is newer, else 204. */
export const onEvents = (desk: Desk): Question =>
  about(desk, (place, request) => followNews(desk, place, () => see(desk, place), request));

export const onCancel = (desk: Desk): Question => about(desk, async (place) => answerResult(await cancel(desk, place)));

export const onRerun = (desk: Desk): Question => about(desk, async (place) => answerResult(await rerun(desk, place)));

export const onOpenTranscript = (desk: Desk): Question =>
  about(desk, async (place) => answerResult(await openTranscript(desk, place)));

export const verified = (
  desk: Desk,
  then: (request: HttpRequest, caller: EdgeCaller) => Promise<HttpResponseInit>,
): Question => fromEdge(ok(desk), then);

/** Answers about one upload. Those of other tenants, owners or zones than the caller's are unknown, as missing ones are. */
export function about(
  desk: Desk,
  then: (place: UploadPlace, request: HttpRequest) => Promise<HttpResponseInit>,
  isId: (id: string) => boolean = isUploadId,
  unknown: 'upload_unknown' | 'project_unknown' = 'upload_unknown',
): Question {
  return verified(desk, async (request, caller) => {
    const { tenant = '', id = '' } = request.params;
    const known = tenant === caller.tenant && isId(id) && (await isVisible(desk, { tenant, id }, caller));
    return known ? then({ tenant, id }, request) : answerNo(refuse(unknown));
  });
}
