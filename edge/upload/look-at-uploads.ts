import type { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, ownerOf, type Scope } from '../../shared/tenant/claims.ts';
import { type UploadRow, uploadList, uploadRow } from '../../shared/upload/contract.ts';
import { isUploadId } from '../../shared/upload/paths.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { readWhole } from '../read-whole.ts';
import { refuseWith } from '../refuse.ts';
import { refusedWith, Session } from '../short/session.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { askBackOffice } from './back-office.ts';
import { SCOPE } from './create-upload.ts';
import { askAboutUpload, distinct } from './find-upload.ts';
import { uploadZones } from './place.ts';
import { tellUpload } from './tell.ts';

const fresh = { 'cache-control': 'no-store' };

/** `GET /v1/uploads/{id}` */
export async function showUpload(
  request: Request,
  context: RequestContext,
  { name: id }: PathParams,
): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const found = await askAboutUpload(id, { method: 'GET' }, uploadRow, claims.value, context);
  return answerRow(found);
}

/** `GET /v1/uploads?after=ID&limit=N`, newest first. */
export async function listUploads(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const query = readPage(new URL(request.url).searchParams, isUploadId, limits.uploadListRows.value);
  const page = query.ok ? await readLists(query.value, claims.value, context, uploadLists) : query;
  if (!page.ok) return refuseWith(page.refusal);
  const { rows, next } = page.value;
  return Response.json({ object: 'list', data: rows.map(tellUpload), ...(next && { next }) }, { headers: fresh });
}

interface Page {
  readonly after: string | undefined;
  readonly limit: number;
}

/** Reads `after` and `limit`, which is at most `most`. */
export function readPage(query: URLSearchParams, isId: (id: string) => boolean, most: number): Result<Page> {
  const after = query.get('after') ?? undefined;
  if (after !== undefined && !isId(after)) {
    return no(refuse('field_invalid', { field: 'after', rule: 'must be an id of this list' }));
  }
  const limit = readWhole(query.get('limit') ?? String(most));
  if (limit === undefined || limit < 1) {
    return no(refuse('field_invalid', { field: 'limit', rule: 'must be a whole number of at least 1' }));
  }
  return ok({ after, limit: Math.min(limit, most) });
}

interface Listed<T, S> {
  readonly root: string;
  readonly schema: S;
  readonly rowsOf: (page: z.infer<S>) => readonly T[];
}

const uploadLists: Listed<UploadRow, typeof uploadList> = {
  root: '/uploads',
  schema: uploadList,
  rowsOf: ({ uploads }) => uploads,
};

/**
 * Returns the pages of all zones as one. Ids sort by time: a page has every row down to its own `next`, so rows beyond
 * the highest of these wait for the next page. Pages of a token that sees only some of its tenant's rows may be short, or empty.
 */
export async function readLists<
  T extends { readonly id: string },
  S extends z.ZodType<{ readonly next?: string | undefined }>,
>(
  { after, limit }: Page,
  claims: Claims,
  context: RequestContext,
  { root, schema, rowsOf }: Listed<T, S>,
): Promise<Result<{ readonly rows: readonly T[]; readonly next: string | undefined }>> {
  const zones = uploadZones(claims, context);
  if (zones.length === 0) return no(refuse('uploads_closed'));
  const query = new URLSearchParams({ limit: String(limit), ...(after !== undefined && { after }) });
  const pages = await Promise.all(
    distinct(zones, context).map((zone) => {
      const path = `${root}/${claims.tenant}?${query}`;
      const question = { zone, method: 'GET', path, zones, owner: ownerOf(claims) } as const;
      return askBackOffice(question, schema, claims.tenant, context);
    }),
  );
  const all: T[] = [];
  let last = '';
  for (const page of pages) {
    if (!page.ok) return page;
    if (page.value) all.push(...rowsOf(page.value));
    if (page.value?.next !== undefined && page.value.next > last) last = page.value.next;
  }
  all.sort((one, other) => (one.id < other.id ? 1 : -1));
  const rows = all.filter(({ id }) => id >= last);
  const shown = rows.slice(0, limit);
  const next = rows.length > limit ? shown.at(-1)?.id : last || undefined;
  return ok({ rows: shown, next });
}

/** `DELETE /v1/uploads/{id}`: cancels a running upload; deletes the remains of an ended one. */
export const deleteUpload = (request: Request, context: RequestContext, { name: id }: PathParams): Promise<Response> =>
  change(request, context, id, { action: 'upload.delete', method: 'DELETE' });

/** `POST /v1/uploads/{id}/rerun`: starts a new run on the stored audio. */
export const rerunUpload = (request: Request, context: RequestContext, { name: id }: PathParams): Promise<Response> =>
  change(request, context, id, { action: 'upload.rerun', method: 'POST', below: '/rerun' });

/** Changes an upload within a lease and with a record, like new work. */
async function change(
  request: Request,
  context: RequestContext,
  id: string,
  { action, ...question }: { action: string; method: 'POST' | 'DELETE'; below?: string },
): Promise<Response> {
  const ask = (claims: Claims) => askAboutUpload(id, question, uploadRow, claims, context);
  return answerRow(await inSession(request, context, { scope: SCOPE, action }, ask));
}

/** Runs work within a lease and with a record, for callers with the scope. */
export async function inSession<T>(
  request: Request,
  context: RequestContext,
  { scope, action }: { readonly scope: Scope; readonly action: string },
  work: (claims: Claims) => Promise<Result<T>>,
): Promise<Result<T>> {
  const claims = await admit(request, scope, context);
  if (!claims.ok) return claims;
  const subject = { action, model: undefined, language: undefined, class: 'batch' } as const;
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) {
    recordDenial(claims.value, action, session.refusal, context);
    return session;
  }
  try {
    const done = await work(claims.value);
    await session.value.end({ ...(done.ok ? { status: 200 } : refusedWith(done.refusal)), bytes: 0 });
    return done;
  } catch (error) {
    await session.value.end({ ...refusedWith(refuse('internal')), bytes: 0 });
    throw error;
  }
}

function answerRow(found: Result<{ readonly value: UploadRow | undefined }, Refusal>): Response {
  if (!found.ok) return refuseWith(found.refusal);
  if (!found.value.value) return refuseWith(refuse('uploads_unavailable', undefined, 'nothing was said'));
  return Response.json(tellUpload(found.value.value), { headers: fresh });
}
