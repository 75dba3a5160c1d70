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
export async function onOpenJob(desk: HttpContext, request: HttpRequest): Promise<HttpResponseInit> {
  const asked = openJob.safeParse(await readJson(request));
  if (!asked.success) return answerNo(refuse('json_invalid'));
  const { job, proof } = asked.data;
  const authorization = request.headers.get('authorization');
  const caller = await verifyAgent({ authorization, proof, job: jobKey(job) }, desk.settings, desk.now());
  if (!caller.ok) return answerNo(caller.refusal);
  return answerResult(await openTakenJob(desk, job, caller.value));
}

/** POST /api/jobs/replay?zone=: moves dead jobs back into the queue. For operators, through the edge. */
export const onReplay = (desk: HttpContext, request: HttpRequest): Promise<HttpResponseInit> =>
  fromEdge(ok(desk), (_, caller) => replayJobs(desk, request, caller))(request);

async function replayJobs(desk: HttpContext, request: HttpRequest, caller: EdgeCaller): Promise<HttpResponseInit> {
  if (!caller.operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
  const asked = request.query.get('zone');
  if (asked !== null && !desk.settings.ZONES.includes(asked)) return answerNo(refuse('zone_unserved', { zone: asked }));
  const zones = asked === null ? desk.settings.ZONES : [asked];
  for (const zone of zones) {
    const told = await desk.audit?.report(zone, {
      type: 'operator.act',
      action: 'jobs.replay',
      zone,
      tenant: caller.tenant,
    });
    if (told && !told.ok) return answerNo(told.refusal);
  }
  const answers = await Promise.all(zones.map(async (zone) => ({ zone, ...(await replay(desk, zone)) })));
  return answer(200, { zones: answers });
}
