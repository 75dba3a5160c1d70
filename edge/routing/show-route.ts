import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { SNAPSHOT_WAIT_MS } from './snapshot.ts';

/** Id of a request, as in `x-request-id`. */
export const requestName = z.uuid();

/** `GET /v1/requests/{id}/route`, by operators: how the agents of a recent request were chosen. */
export async function showRoute(request: Request, context: RequestContext, { name }: PathParams): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  if (!requestName.safeParse(name).success) return refuseWith(refuse('decision_unknown'));
  const read = async (zone: string) => {
    try {
      return await within(Promise.resolve(env.ROSTER.getByName(zone).decision(name)), SNAPSHOT_WAIT_MS, runtime);
    } catch {
      return late;
    }
  };
  const found = await Promise.all(settings.zones.map(read));
  const [decision] = found.filter((one) => one !== late && one !== undefined);
  if (decision) return Response.json(decision);
  return refuseWith(refuse(found.includes(late) ? 'pools_unavailable' : 'decision_unknown'));
}
