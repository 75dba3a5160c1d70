import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute } from '../functions/call-functions.ts';
import { refuseWith } from '../http/refuse.ts';
import { distinct } from './find-job.ts';

const count = z.number().int();

export const replayedJobs = z.object({
  zones: z.array(
    z.object({
      zone: z.string(),
      replayed: count.describe('Jobs sent again'),
      rerun: count.describe('Abandoned uploads that run again'),
      dropped: count.describe('Jobs that are no longer wanted'),
    }),
  ),
});

/** `POST /v1/jobs/replay?zone=`: requeues dead jobs, for operators. Idempotent. */
export async function replayJobs(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { functionsUrls } = context.settings;
  if (functionsUrls.size === 0) return refuseWith(refuse('uploads_closed'));
  const requested = new URL(request.url).searchParams.get('zone');
  if (requested !== null && !functionsUrls.has(requested))
    return refuseWith(refuse('zone_unserved', { zone: requested }));
  const query = requested === null ? '' : `?zone=${encodeURIComponent(requested)}`;
  const zones: z.infer<typeof replayedJobs>['zones'] = [];
  for (const zone of requested === null ? distinct([...functionsUrls.keys()], context) : [requested]) {
    const question = { zone, method: 'POST', path: `/jobs/replay${query}`, operate: true } as const;
    const answer = await callFunctionsRoute(question, replayedJobs, claims.value.tenant, context);
    if (!answer.ok) return refuseWith(answer.refusal);
    zones.push(...(answer.value?.zones ?? []));
  }
  return Response.json({ zones }, { headers: { 'cache-control': 'no-store' } });
}
