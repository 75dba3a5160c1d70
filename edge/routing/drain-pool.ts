import { z } from 'zod';
import { agentDescription } from '../../shared/pool/description.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { commitmentOfReader } from '../ledger/commitment.ts';
import { healthOf } from './agent-health.ts';
import { readSnapshots, refreshSnapshots, SNAPSHOT_WAIT_MS } from './snapshot.ts';

/** Body of `POST /v1/pools/{pool}/drain`. */
export const drainBody = z.strictObject({
  force: z.boolean().optional().describe('Drains the last pool of a model in its zone, too'),
});

export const drainedPool = z.object({
  object: z.literal('pool.drain'),
  pool: agentDescription.shape.pool,
  agents: z.array(z.string()).describe('Agents that have the order. Each serves again once its process restarts'),
});

/**
 * `POST /v1/pools/{pool}/drain`, by operators: the agents of a pool take no new work, finish requests and hand
 * live streams to others. Idempotent.
 */
export async function drainPool(request: Request, context: RequestContext, params: PathParams): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const json = await readJson(request, context);
  if (!json.ok) return refuseWith(json.refusal);
  const body = drainBody.safeParse(json.value);
  if (!body.success) return refuseWith(refuseField(body.error, json.value));
  const { pool = '' } = params;
  const zones = await zonesOf(pool, context);
  if (!zones.ok) return refuseWith(zones.refusal);
  const agents: string[] = [];
  for (const zone of zones.value) {
    const drained = await drainIn(zone, { pool, force: body.data.force ?? false, claims: claims.value }, context);
    if (!drained.ok) return refuseWith(drained.refusal);
    agents.push(...drained.value);
  }
  await refreshSnapshots(zones.value, context.env.ROSTER, context.runtime);
  const answer: z.infer<typeof drainedPool> = { object: 'pool.drain', pool, agents };
  return Response.json(answer, { headers: { 'cache-control': 'no-store' } });
}

/** Returns the zones with connected agents of the pool: one, unless two zones gave pools the same name. */
async function zonesOf(pool: string, { settings, env, runtime }: RequestContext): Promise<Result<string[]>> {
  await refreshSnapshots(settings.zones, env.ROSTER, runtime);
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const zones = snapshots
    .filter(({ at, entries }) =>
      entries.some((entry) => entry.description.pool === pool && healthOf(entry, at) !== 'gone'),
    )
    .map(({ zone }) => zone);
  if (zones.length > 0) return ok(zones);
  if (snapshots.length < settings.zones.length) return no(refuse('pools_unavailable'));
  return no(refuse('pool_unknown', { pool: pool.slice(0, 63) }));
}

interface Drain {
  readonly pool: string;
  readonly force: boolean;
  readonly claims: Claims;
}

/** Has the roster of a zone order its agents of the pool to drain; returns their names. */
async function drainIn(
  zone: string,
  { pool, force, claims }: Drain,
  context: RequestContext,
): Promise<Result<readonly string[]>> {
  const subject = await commitmentOfReader(zone, claims, context);
  if (!subject.ok) return subject;
  const by = { tenant: claims.tenant, request: context.id, ...(subject.value && { subject: subject.value }) };
  const order = async () => context.env.ROSTER.getByName(zone).drain(pool, { force, by });
  const drained = await within(order(), SNAPSHOT_WAIT_MS, context.runtime).catch((): typeof late => late);
  return drained === late ? no(refuse('pools_unavailable', undefined, 'a roster does not answer')) : drained;
}
