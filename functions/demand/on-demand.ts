// Demand for the models of a pool, for its autoscaler: a pool without pods has no metrics of its own.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { refuse } from '../../shared/refusal.ts';
import { type AgentSettings, verifyPool } from '../caller/agent-caller.ts';
import { answer, answerNo } from '../http/answer.ts';
import type { Jobs } from '../store/jobs.ts';
import { countUnserved, type DemandContext } from './demand.ts';

/** Models of one call: each costs two reads of a queue's length. */
const DEMAND_CALL_MODELS_MAX = 32;

interface Context extends DemandContext {
  readonly settings: AgentSettings;
  readonly jobs: Pick<Jobs, 'messages'>;
}

/**
 * GET /api/agents/demand?models=a,b, with the pool token, whose zone counts. Answers `requests`, models whose
 * requests found no agent lately, `jobs` in their queues, and `demand`, the sum.
 */
export async function onDemand(context: Context, request: HttpRequest): Promise<HttpResponseInit> {
  const pool = await verifyPool(request.headers.get('authorization'), context.settings, context.now());
  if (!pool.ok) return answerNo(pool.refusal);
  const { zone } = pool.value;
  const models = [...new Set((request.query.get('models') ?? '').split(',').filter(Boolean))];
  if (models.length === 0 || models.length > DEMAND_CALL_MODELS_MAX)
    return answerNo(refuse('field_invalid', { field: 'models', rule: `1 to ${DEMAND_CALL_MODELS_MAX} names` }));
  const lanes = models.flatMap((model) => [
    { zone, model },
    { zone, model, light: true as const },
  ]);
  const [requests, ...messages] = await Promise.all([
    countUnserved(context, zone, models),
    ...lanes.map((lane) => context.jobs.messages(lane)),
  ]);
  const jobs = messages.reduce((sum, { waiting, taken }) => sum + waiting + taken, 0);
  return answer(200, { zone, requests, jobs, demand: requests + jobs });
}
