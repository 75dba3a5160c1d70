import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { gateName } from '../ledger/record.ts';
import { MONTH, monthOf, usageRow } from '../ledger/usage.ts';
import { TENANTS_PAGE_MAX } from '../routing/stored-tenants.ts';

/** Longest read of all objects of a page: their storage needs milliseconds, and some have to start. */
const USAGE_WAIT_MS = 10_000;

export const listedUsage = z.object({
  object: z.literal('list'),
  month: z.string().regex(MONTH),
  data: z.array(usageRow.extend({ tenant: z.string(), zone: z.string() })),
  next: z.string().optional().describe('Value of `after` for the next page; absent on the last one'),
});
type ListedUsage = z.infer<typeof listedUsage>;

/** Position in the pages: a zone, and the last tenant of it that was listed; none at its start. */
export const USAGE_AFTER = /^[a-z0-9][a-z0-9_.-]{0,62}\/(?:[a-z0-9][a-z0-9_-]{0,62})?$/;

interface Query {
  readonly month: string;
  readonly zone: string;
  readonly tenant: string;
}

/** `GET /v1/usage?month=…&after=…`, for operators: the usage of all tenants in a month, by home zone and pool. */
export async function listUsage(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const query = readQuery(new URL(request.url).searchParams, context);
  if (!query.ok) return refuseWith(query.refusal);
  const read = readUsage(query.value, context).catch(() => late);
  const listed = await within(read, USAGE_WAIT_MS, context.runtime);
  // An invoice must not lack a tenant: a page without one answer is refused.
  if (listed === late) return refuseWith(refuse('audit_unavailable', undefined, 'a ledger does not answer'));
  return Response.json(listed, { headers: { 'cache-control': 'no-store' } });
}

function readQuery(query: URLSearchParams, { settings, runtime }: RequestContext): Result<Query> {
  const month = query.get('month') ?? monthOf(runtime.now());
  const after = query.get('after') ?? `${settings.zones[0]}/`;
  if (!MONTH.test(month)) return no(refuse('field_invalid', { field: 'month', rule: 'must be a month, as 2026-11' }));
  const [zone = '', tenant = ''] = after.split('/');
  if (!USAGE_AFTER.test(after))
    return no(refuse('field_invalid', { field: 'after', rule: 'must be the next of a page' }));
  // An empty page would end the listing before the tenants of the other zones.
  if (!settings.zones.includes(zone)) return no(refuse('zone_unserved', { zone }));
  return ok({ month, zone, tenant });
}

async function readUsage(
  { month, zone, tenant: after }: Query,
  { env, settings }: RequestContext,
): Promise<ListedUsage> {
  const { zones } = settings;
  const tenants = await env.ROSTER.getByName(zone).tenants(month, after);
  const rows = tenants.map(async (tenant) => {
    const used = await env.GATE.getByName(gateName({ tenant, zones: [zone] }, zones)).usage(month);
    return used.map((row) => ({ tenant, zone, ...row }));
  });
  const data = (await Promise.all(rows)).flat();
  const following = zones[zones.indexOf(zone) + 1];
  const next = tenants.length === TENANTS_PAGE_MAX ? `${zone}/${tenants.at(-1)}` : following && `${following}/`;
  return { object: 'list', month, data, ...(next !== undefined && { next }) };
}
