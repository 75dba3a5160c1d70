// HTTP calls of agents and operators about jobs.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { jobKey } from '../../shared/jobs/job.ts';
import { openJob } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { ok } from '../../shared/result.ts';
import { verifyAgent } from '../caller/agent-caller.ts';
import type { EdgeCaller } from '../caller/edge-caller.ts';
import { fromEdge } from '../caller/from-edge.ts';
import { answer, answerNo, answerResult } from '../http/answer.ts';
import { readJson } from '../http/read-json.ts';
import type { HttpContext } from './http.ts';
import { openTakenJob } from './open-job.ts';
import { replay } from './replay.ts';

/** POST /api/jobs/open */
export async function onOpenJob(context: HttpContext, request: HttpRequest): Promise<HttpResponseInit> {
  const parsed = openJob.safeParse(await readJson(request));
  if (!parsed.success) return answerNo(refuse('json_invalid'));
  const { job, proof } = parsed.data;
  const authorization = request.headers.get('authorization');
  const caller = await verifyAgent({ authorization, proof, job: jobKey(job) }, context.settings, context.now());
  if (!caller.ok) return answerNo(caller.refusal);
  return answerResult(await openTakenJob(context, job, caller.value));
}

/** POST /api/jobs/replay?zone=: moves dead jobs back into the queue. For operators, through the edge. */
export const onReplay = (context: HttpContext, request: HttpRequest): Promise<HttpResponseInit> =>
  fromEdge(ok(context), (_, caller) => replayJobs(context, request, caller))(request);

async function replayJobs(context: HttpContext, request: HttpRequest, caller: EdgeCaller): Promise<HttpResponseInit> {
  if (!caller.operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
  const only = request.query.get('zone');
  if (only !== null && !context.settings.ZONES.includes(only)) return answerNo(refuse('zone_unserved', { zone: only }));
  const zones = only === null ? context.settings.ZONES : [only];
  for (const zone of zones) {
    const reported = await context.audit?.report(zone, {
      type: 'operator.act',
      action: 'jobs.replay',
      zone,
      tenant: caller.tenant,
    });
    if (reported && !reported.ok) return answerNo(reported.refusal);
  }
  const answers = await Promise.all(zones.map(async (zone) => ({ zone, ...(await replay(context, zone)) })));
  return answer(200, { zones: answers });
}
