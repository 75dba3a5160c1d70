import type { CallHead } from '../../../../shared/kserve/call.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { modelPath, readWhole } from '../engine/calls/client.ts';
import { engineRefusal } from '../engine/calls/engine-refusal.ts';
import { engineModelOf } from '../models/served-model.ts';
import type { AgentRequest } from '../request/admitted-request.ts';
import { respond } from '../request/respond.ts';
import { ENGINE_MS } from '../settings/limits.ts';
import { withoutRevision } from './without-revision.ts';

/** Suffix of the model's address for each task. */
const suffixes = { metadata: '', config: '/config', stats: '/stats' } as const;

/** Passes on the engine's description of the model: metadata, configuration or statistics. */
export async function describeModel(work: AgentRequest, head: CallHead): Promise<Result<number>> {
  const suffix = suffixes[head.task as keyof typeof suffixes];
  const timeout = AbortSignal.timeout(ENGINE_MS);
  const signal = AbortSignal.any([work.signal, timeout]);
  const path = `${modelPath(engineModelOf(work.model), head.version)}${suffix}`;
  const answer = await work.context.calls.client.call({ method: 'GET', path, signal });
  const body = answer.ok ? await readWhole(answer.value) : answer;
  if (!answer.ok || !body.ok) return body as Result<never>;
  const { status } = answer.value;
  const said = withoutRevision(body.value, work.model);
  if (status !== 200) return no(engineRefusal({ status, body: said }, head));
  const sent = await respond(work.answer, { 'content-type': 'application/json' }, [said], head.accept);
  return sent.ok ? ok(0) : sent;
}
