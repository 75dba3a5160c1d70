import { z } from 'zod';
import { agentDescription } from '../../shared/pool/description.ts';
import { load } from '../../shared/pool/heartbeat.ts';
import { refuse } from '../../shared/refusal.ts';
import { admit } from '../auth/admit.ts';
import { authenticatePool } from '../auth/authenticate.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { healthOf, healths } from './agent-health.ts';
import type { RefusedAgent } from './refused-agents.ts';
import { readSnapshots, SNAPSHOT_WAIT_MS } from './snapshot.ts';

/** An agent as operators see it: without keys or attestation. */
export const listedPool = agentDescription.extend({
  load,
  health: z.enum(healths),
  /** Milliseconds since its last message. */
  heardMs: z.number(),
  release: z.number().int().optional().describe('Generation of the release map that the agent follows'),
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
    const answer = Promise.resolve(env.ROSTER.getByName(zone).refused()).catch(() => []);
    const found = await within(answer, SNAPSHOT_WAIT_MS, runtime);
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
    return refuseWith(recorder.denyUnknown(id, 'pool', claims.refusal));
  }
  const { pool, zone } = claims.value;
  if (!settings.zones.includes(zone)) {
    const refusal = refuse('zone_unserved', { zone }, `pool ${pool.slice(0, 63)}, zone ${zone.slice(0, 63)}`);
    return refuseWith(recorder.denyUnknown(id, 'pool', refusal));
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
