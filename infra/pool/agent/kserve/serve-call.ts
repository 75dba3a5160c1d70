import { type CallHead, type CallTask, callHead } from '../../../../shared/kserve/call.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { AgentRequest } from '../request/admitted-request.ts';
import { describeModel } from './describe-model.ts';
import { generate } from './generate.ts';
import { infer } from './infer.ts';

/** Emits the answer without its end; gives the seconds of sound that were used. */
type Serve = (work: AgentRequest, head: CallHead) => Promise<Result<number>>;

const tasks: Readonly<Record<CallTask, Serve>> = {
  infer,
  generate,
  generate_stream: generate,
  metadata: describeModel,
  config: describeModel,
  stats: describeModel,
};

/** One request of a KServe v2 client. Emits everything but a refusal. */
export async function serveCall(work: AgentRequest): Promise<Result<undefined>> {
  const head = callHead.safeParse(work.head);
  if (!head.success) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (head.data.model !== work.ticket.model) return no(refuse('ticket_invalid', undefined, 'model of the head'));
  const served = await tasks[head.data.task](work, head.data);
  if (!served.ok) {
    // The client does not read, so a refusal would not arrive.
    if (served.refusal.reason === 'reader_slow') work.answer.cut();
    return served;
  }
  const { name, revision } = work.model.description;
  await work.answer.send({ type: 'final', model: name, revision, durationSeconds: served.value });
  return ok(undefined);
}
