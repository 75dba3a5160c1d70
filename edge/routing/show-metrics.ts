import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { renderMetrics } from '../telemetry/metric-table.ts';
import { SNAPSHOT_WAIT_MS } from './snapshot.ts';

/** Content type of the page (Prometheus, text format 0.0.4). */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** `GET /metrics`, for operators: the sums of the zones. A zone whose Roster does not answer is left out. */
export async function showMetrics(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, env, runtime } = context;
  const read = settings.zones.map(async (zone) => {
    const answer = Promise.resolve(env.ROSTER.getByName(zone).metrics()).catch(() => []);
    const series = await within(answer, SNAPSHOT_WAIT_MS, runtime);
    return series === late ? [] : series;
  });
  const series = new Map((await Promise.all(read)).flat());
  return new Response(renderMetrics(series), {
    headers: { 'content-type': METRICS_TYPE, 'cache-control': 'no-store' },
  });
}
