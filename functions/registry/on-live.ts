// Endpoint for agents' reports of live traffic (shared/registry/live-report.ts).
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { jsonOf } from '../../shared/json-text.ts';
import { refuse } from '../../shared/refusal.ts';
import { liveProofOf, liveReport, sentLiveReport } from '../../shared/registry/live-report.ts';
import { verifyAgent } from '../caller/agent-caller.ts';
import { answer, answerNo } from '../http/answer.ts';
import { readJson } from '../http/read-json.ts';
import { type ModelContext, requireModels } from './model-context.ts';
import { storeReport } from './stored-live.ts';

/** POST /api/agents/live */
export const onLive =
  (context: ModelContext | undefined) =>
  async (request: HttpRequest): Promise<HttpResponseInit> => {
    const needed = requireModels(context);
    if (!needed.ok) return answerNo(needed.refusal);
    const known = needed.value;
    const sent = sentLiveReport.safeParse(await readJson(request));
    if (!sent.success) return answerNo(refuse('json_invalid'));
    const { report, proof } = sent.data;
    const authorization = request.headers.get('authorization');
    const credentials = { authorization, proof, job: liveProofOf(report) };
    const caller = await verifyAgent(credentials, known.settings, known.now());
    if (!caller.ok) return answerNo(caller.refusal);
    const read = liveReport.safeParse(jsonOf(report));
    if (!read.success) return answerNo(refuse('json_invalid'));
    await storeReport(known, caller.value.agent, caller.value.zone, read.data);
    return answer(200, { seq: read.data.seq });
  };
