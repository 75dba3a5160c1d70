import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, ownerOf } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute } from '../functions/call-functions.ts';
import { readWhole } from '../http/read-whole.ts';
import { distinct } from './find-job.ts';
import type { JobKind, JobPage, JobRow } from './kinds.ts';
import { uploadZones } from './place-work.ts';

interface PageQuery {
  readonly after: string | undefined;
  readonly limit: number;
}

/** Reads `after` and `limit`, which is at most `pageRows` of the kind. */
export function readPage<Row extends JobRow>(query: URLSearchParams, kind: JobKind<Row>): Result<PageQuery> {
  const after = query.get('after') ?? undefined;
  if (after !== undefined && !kind.isId(after)) {
    return no(refuse('field_invalid', { field: 'after', rule: 'must be an id of this list' }));
  }
  const limit = readWhole(query.get('limit') ?? String(kind.pageRows));
  if (limit === undefined || limit < 1) {
    return no(refuse('field_invalid', { field: 'limit', rule: 'must be a whole number of at least 1' }));
  }
  return ok({ after, limit: Math.min(limit, kind.pageRows) });
}

/**
 * Returns the pages of all zones as one. Ids sort by time: a page has every row down to its own `next`, so rows beyond
 * the highest of these wait for the next page. A page may be short, or empty, when the token sees only some rows.
 */
export async function listPage<Row extends JobRow>(
  { root, page: schema }: JobKind<Row>,
  { after, limit }: PageQuery,
  claims: Claims,
  context: RequestContext,
): Promise<Result<JobPage<Row>>> {
  const zones = uploadZones(claims, context);
  if (zones.length === 0) return no(refuse('uploads_closed'));
  const query = new URLSearchParams({ limit: String(limit), ...(after !== undefined && { after }) });
  const pages = await Promise.all(
    distinct(zones, context).map((zone) => {
      const path = `${root}/${claims.tenant}?${query}`;
      const question = { zone, method: 'GET', path, zones, owner: ownerOf(claims) } as const;
      return callFunctionsRoute(question, schema, claims.tenant, context);
    }),
  );
  const all: Row[] = [];
  let last = '';
  for (const page of pages) {
    if (!page.ok) return page;
    if (page.value) all.push(...page.value.rows);
    if (page.value?.next !== undefined && page.value.next > last) last = page.value.next;
  }
  all.sort((one, other) => (one.id < other.id ? 1 : -1));
  const rows = all.filter(({ id }) => id >= last);
  const shown = rows.slice(0, limit);
  const next = rows.length > limit ? shown.at(-1)?.id : last || undefined;
  return ok({ rows: shown, next });
}
