import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, isTenantName } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readWhole } from '../http/read-whole.ts';
import { refuseWith } from '../http/refuse.ts';
import { anonymousOwner, gateName } from '../ledger/record.ts';
import { isOpenTo } from './exports.ts';

/** Events of one page of an outbox; at 16 KiB each still a small answer. */
const OUTBOX_PAGE_EVENTS_MAX = 500;

/**
 * `GET /v1/audit/outbox?tenant=…&after=…&limit=…`: events not yet taken over by the log. `zone=…` reads a roster's.
 * The scope `audit` opens the outbox of the token's own tenant, `operate` every outbox. The reader's Gate records each read
 * before the response. The functions record other reads; outboxes stay readable while the functions are down.
 */
export async function readOutbox(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['audit', 'operate'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env } = context;
  const query = new URL(request.url).searchParams;
  if (!claims.value.scopes.has('operate') && query.get('tenant') !== claims.value.tenant) {
    const refusal = refuse('scope_missing', { scope: 'operate' });
    return refuseWith(recordDenial(claims.value, 'operate', refusal, context));
  }
  const page = readPage(query);
  if (!page.ok) return refuseWith(page.refusal);
  const tenant = query.get('tenant');
  const zone = query.get('zone');
  if (zone !== null && !(settings.zones.includes(zone) && isOpenTo(claims.value, zone))) {
    return refuseWith(refuse('zone_unserved', { zone }));
  }
  if (tenant !== null) {
    // Each requested name creates an object, so only names of tenants pass.
    if (tenant !== anonymousOwner.tenant && !isTenantName(tenant)) {
      return refuseWith(refuse('field_invalid', { field: 'tenant', rule: 'must be the name of a tenant' }));
    }
    const recorded = await recordRead(claims.value, { zone, query: `tenant ${tenant}` }, context);
    if (!recorded.ok) return refuseWith(recorded.refusal);
    const name = gateName({ tenant, zones: zone === null ? claims.value.zones : [zone] }, settings.zones);
    return Response.json(await env.GATE.getByName(name).outbox(page.value.after, page.value.limit));
  }
  if (zone === null) return refuseWith(refuse('field_missing', { field: 'tenant' }));
  const recorded = await recordRead(claims.value, { zone, query: 'roster' }, context);
  if (!recorded.ok) return refuseWith(recorded.refusal);
  return Response.json(await env.ROSTER.getByName(zone).outbox(page.value.after, page.value.limit));
}

/** Records the read durably, or refuses it. */
async function recordRead(
  claims: Claims,
  { zone, query }: { readonly zone: string | null; readonly query: string },
  { id, recorder, runtime }: RequestContext,
): Promise<Result<undefined>> {
  const { tenant, subject } = claims;
  const event = recorder.mint({
    ...{ type: 'access.audit', request: id, tenant, action: 'outbox', count: 1, since: runtime.now(), query },
    ...(zone !== null && { zone }),
    ...(subject !== undefined && { subject }),
  });
  const step = { kind: 'record', mode: 'strict', events: [event] } as const;
  const recorded = await recorder.append(claims, step);
  return recorded ? ok(undefined) : no(recorder.refusal(claims, 'a read of an outbox'));
}

function readPage(query: URLSearchParams): Result<{ after: number; limit: number }> {
  const after = readWhole(query.get('after') ?? '0');
  const limit = readWhole(query.get('limit') ?? String(OUTBOX_PAGE_EVENTS_MAX));
  if (after === undefined) {
    return no(refuse('field_invalid', { field: 'after', rule: 'must be a whole number' }));
  }
  if (limit === undefined || limit < 1) {
    return no(refuse('field_invalid', { field: 'limit', rule: 'must be a whole number of at least 1' }));
  }
  return ok({ after, limit: Math.min(limit, OUTBOX_PAGE_EVENTS_MAX) });
}
