// Endpoint for agents' reports of live traffic (shared/registry/live-report.ts).
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import { refuse } from '../../shared/refusal.ts';
import { liveProofOf, liveReport, SENT_REPORT_BYTES_MAX, sentLiveReport } from '../../shared/registry/live-report.ts';
import { readAgentCall } from '../caller/read-agent-call.ts';
import { answer, answerNo } from '../http/answer.ts';
import { type ModelContext, requireModels } from './model-context.ts';
import { storeReport } from './stored-live.ts';

const body = {
  schema: sentLiveReport,
  bytesMax: SENT_REPORT_BYTES_MAX,
  jobOf: ({ report }: z.infer<typeof sentLiveReport>) => liveProofOf(report),
};

/** POST /api/agents/live */
export const onLive =
  (context: ModelContext | undefined) =>
  async (request: HttpRequest): Promise<HttpResponseInit> => {
    const needed = requireModels(context);
    if (!needed.ok) return answerNo(needed.refusal);
    const known = needed.value;
    const call = await readAgentCall(request, known, body);
    if (!call.ok) return answerNo(call.refusal);
    const { sent, caller } = call.value;
    const read = liveReport.safeParse(jsonOf(sent.report));
    if (!read.success) return answerNo(refuse('json_invalid'));
    await storeReport(known, caller.agent, caller.zone, read.data);
    return answer(200, { seq: read.data.seq });
  };
