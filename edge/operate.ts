import { z } from 'zod';
import { limits } from '../shared/limits.ts';
import { poolDescription } from '../shared/pool/description.ts';
import { healthOf, healths } from '../shared/pool/health.ts';
import { load } from '../shared/pool/heartbeat.ts';
import { refuse } from '../shared/refusal.ts';
import { no, ok, type Result } from '../shared/result.ts';
import { type Claims, isTenantName } from '../shared/tenant/claims.ts';
import { isOpenTo } from './audit/exports.ts';
import { anonymousOwner, gateName } from './audit/record.ts';
import { late, within } from './clock.ts';
import type { RequestContext } from './context.ts';
import type { RefusedAgent } from './pool/refused-agents.ts';
import { readSnapshots } from './pool/snapshot.ts';
import { readWhole } from './read-whole.ts';
import { refuseWith } from './refuse.ts';
import { admit, recordDenial } from './tenant/admit.ts';
import { authenticatePool } from './tenant/authenticate.ts';

/** An agent as operators see it: without keys or attestation. */
export const listedPool = poolDescription.extend({
  load,
  health: z.enum(healths),
  /** Milliseconds since it was last heard. */
  heardMs: z.number(),
  release: z.number().int().optional().describe('Generation of the release map that it goes by'),
});

export const listedPools = z.object({
  object: z.literal('list'),
  data: z.array(listedPool),
  refused: z
    .array(z.object({ pool: z.string(), zone: z.string(), why: z.string(), refusedMs: z.number() }))
    .describe('Agents that the roster refuses, by pool, with the reason and the milliseconds since then'),
});

/** `GET /v1/pools`: the agents as the rosters know them, those that went lately or are refused included. */
export async function listPools(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const data = snapshots.flatMap(({ at, entries }) =>
    entries.map(
      ({ description, load, heard, release }): z.infer<typeof listedPool> => ({
        ...description,
        load,
        health: healthOf({ load, heard }, at),
        heardMs: at - heard,
        ...(release !== undefined && { release }),
      }),
    ),
  );
  const refused = settings.zones.map(async (zone): Promise<RefusedAgent[]> => {
    const asked = Promise.resolve(env.ROSTER.getByName(zone).refused()).catch(() => []);
    const found = await within(asked, limits.snapshotWaitMs.value, runtime);
    return found === late ? [] : found;
  });
  return Response.json({ object: 'list', data, refused: (await Promise.all(refused)).flat() });
}

/** `GET /v1/pools/heartbeat`: an agent's WebSocket, handed to the roster of the zone its token names. */
export async function joinRoster(request: Request, context: RequestContext): Promise<Response> {
  const { settings, env, runtime, recorder, id } = context;
  const token = request.headers.get('authorization');
  const claims = await authenticatePool(token, settings.issuers, runtime.now());
  if (!claims.ok) {
    recorder.deniedUnknown(id, 'pool', claims.refusal.reason, claims.refusal.detail);
    return refuseWith(claims.refusal);
  }
  const { pool, zone } = claims.value;
  if (!settings.zones.includes(zone)) {
    const refusal = refuse('zone_unserved', { zone }, `pool ${pool.slice(0, 63)}, zone ${zone.slice(0, 63)}`);
    recorder.deniedUnknown(id, 'pool', refusal.reason, refusal.detail);
    return refuseWith(refusal);
  }
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    return refuseWith(refuse('upgrade_missing'));
  }
  // Only these headers: what the agent sent besides has no business in the object, its token least of all.
  const headers = { upgrade: 'websocket', 'auricle-pool': pool, 'auricle-zone': zone };
  const answer = await env.ROSTER.getByName(zone).fetch(new Request(request.url, { headers }));
  // The headers of a "no" are still to be added to; the answer to an upgrade is handed on as it is.
  return answer.status === 101 ? answer : new Response(answer.body, answer);
}

/**
 * `GET /v1/audit/outbox?tenant=…&after=…&limit=…`: events not yet taken over by the log. `zone=…` reads a roster's.
 * The scope `audit` opens the outbox of the token's own tenant; `operate` is of the whole fleet and opens all. Each read is
 * recorded at the reader's gate before the answer. The functions record other reads; outboxes are read when the functions
 * are down.
 */
export async function readOutbox(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['audit', 'operate'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env } = context;
  const query = new URL(request.url).searchParams;
  if (!claims.value.scopes.has('operate') && query.get('tenant') !== claims.value.tenant) {
    const refusal = refuse('scope_missing', { scope: 'operate' });
    recordDenial(claims.value, 'operate', refusal, context);
    return refuseWith(refusal);
  }
  const page = readPage(query);
  if (!page.ok) return refuseWith(page.refusal);
  const tenant = query.get('tenant');
  const zone = query.get('zone');
  if (zone !== null && !(settings.zones.includes(zone) && isOpenTo(claims.value, zone))) {
    return refuseWith(refuse('zone_unserved', { zone }));
  }
  if (tenant !== null) {
    // Every name that is asked for becomes an object: no others than tenants can have.
    if (tenant !== anonymousOwner.tenant && !isTenantName(tenant)) {
      return refuseWith(refuse('field_invalid', { field: 'tenant', rule: 'must be the name of a tenant' }));
    }
    const told = await tellRead(claims.value, { zone, query: `tenant ${tenant}` }, context);
    if (!told.ok) return refuseWith(told.refusal);
    const name = gateName({ tenant, zones: zone === null ? claims.value.zones : [zone] }, settings.zones);
    return Response.json(await env.GATE.getByName(name).outbox(page.value.after, page.value.limit));
  }
  if (zone === null) return refuseWith(refuse('field_missing', { field: 'tenant' }));
  const told = await tellRead(claims.value, { zone, query: 'roster' }, context);
  if (!told.ok) return refuseWith(told.refusal);
  return Response.json(await env.ROSTER.getByName(zone).outbox(page.value.after, page.value.limit));
}

/** Records the read durably, or refuses it. */
async function tellRead(
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
  const told = await recorder.record(claims, step);
  return told ? ok(undefined) : no(recorder.refusal(claims, 'a read of an outbox'));
}

function readPage(query: URLSearchParams): Result<{ after: number; limit: number }> {
  const after = readWhole(query.get('after') ?? '0');
  const limit = readWhole(query.get('limit') ?? String(limits.auditPageEvents.value));
  if (after === undefined) {
    return no(refuse('field_invalid', { field: 'after', rule: 'must be a whole number' }));
  }
  if (limit === undefined || limit < 1) {
    return no(refuse('field_invalid', { field: 'limit', rule: 'must be a whole number of at least 1' }));
  }
  return ok({ after, limit: Math.min(limit, limits.auditPageEvents.value) });
}
