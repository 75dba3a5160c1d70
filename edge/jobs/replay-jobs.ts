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
  const { backOffices } = context.settings;
  if (backOffices.size === 0) return refuseWith(refuse('uploads_closed'));
  const asked = new URL(request.url).searchParams.get('zone');
  if (asked !== null && !backOffices.has(asked)) return refuseWith(refuse('zone_unserved', { zone: asked }));
  const query = asked === null ? '' : `?zone=${encodeURIComponent(asked)}`;
  const zones: z.infer<typeof replayedJobs>['zones'] = [];
  for (const zone of asked === null ? distinct([...backOffices.keys()], context) : [asked]) {
    const question = { zone, method: 'POST', path: `/jobs/replay${query}`, operate: true } as const;
    const answer = await callFunctionsRoute(question, replayedJobs, claims.value.tenant, context);
    if (!answer.ok) return refuseWith(answer.refusal);
    zones.push(...(answer.value?.zones ?? []));
  }
  return Response.json({ zones }, { headers: { 'cache-control': 'no-store' } });
}
