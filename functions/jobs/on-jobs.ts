// HTTP calls of agents and operators about jobs.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import { jobKey } from '../../shared/jobs/job.ts';
import { OPEN_JOB_BYTES_MAX, openJob } from '../../shared/jobs/upload-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { ok } from '../../shared/result.ts';
import type { EdgeCaller } from '../caller/edge-caller.ts';
import { fromEdge } from '../caller/from-edge.ts';
import { readAgentCall } from '../caller/read-agent-call.ts';
import { answer, answerNo, answerResult } from '../http/answer.ts';
import type { HttpContext } from './http.ts';
import { openTakenJob } from './open-job.ts';
import { replay } from './replay.ts';

const body = {
  schema: openJob,
  bytesMax: OPEN_JOB_BYTES_MAX,
  jobOf: ({ job }: z.infer<typeof openJob>) => jobKey(job),
};

/** POST /api/jobs/open */
export async function onOpenJob(context: HttpContext, request: HttpRequest): Promise<HttpResponseInit> {
  const call = await readAgentCall(request, context, body);
  if (!call.ok) return answerNo(call.refusal);
  return answerResult(await openTakenJob(context, call.value.sent.job, call.value.caller));
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
