import type { IncomingMessage, ServerResponse } from 'node:http';
import { limits } from '../../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { isStorageFull, refuseFull } from '../../../../shared/storage-full.ts';
import { newTally } from '../live-counts/tally.ts';
import { plainRefusal } from '../request/admit.ts';
import type { AgentContext } from '../request/agent-context.ts';
import { type Answer, openAnswer } from '../request/answer.ts';
import type { RequestSlot } from '../request/request-slots.ts';
import type { Facts } from '../request/ticket.ts';
import { discard } from './body.ts';
import { type AdmittedRequest, admitRequest } from './sealed-session.ts';
import { serveTask } from './task.ts';

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, refusal: Refusal) {
  const { status, body } = plainRefusal(refusal);
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  discard(incoming);
}

/** Serves one unary request (`POST /v1/short`) from its first header to its last record. Never rejects. */
export async function serveUnary(
  desk: AgentContext,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  incoming.on('error', () => {});
  response.on('error', () => {});
  const entry = desk.enter();
  let slot: Result<RequestSlot> | undefined;
  const takeSlot = ({ class: name, tenant, deadlineMs }: Facts) => {
    const taken = desk.takeSlot({ class: name, tenant, deadline: desk.now() + deadlineMs });
    slot = taken.ok ? taken : no(desk.withRetry(taken.refusal, name));
    return slot;
  };
  try {
    const admitted = await admitRequest(desk, incoming, takeSlot);
    if (!admitted.ok || !slot?.ok) {
      const refusal = admitted.ok ? refuse('internal', undefined, 'no slot') : admitted.refusal;
      desk.report(refusal);
      return answerPlainly(response, incoming, refusal);
    }
    const answer = openAnswer(response, admitted.value.sealer, desk.keepaliveMs, limits.agentHoldMs.value);
    const work = { ...admitted.value, answer, stopped: entry.signal, slot: slot.value };
    const outcome = await serve(desk, work, response);
    if (!outcome.ok) desk.report(outcome.refusal);
    else desk.metrics.request('ok');
  } catch (error) {
    desk.bug(error);
    response.destroy();
  } finally {
    if (slot?.ok) slot.value.leave();
    entry.leave();
  }
}

interface AdmittedWork extends Pick<AdmittedRequest, 'ticket' | 'model' | 'records'> {
  readonly answer: Answer;
  /** Aborts when the agent stops. */
  readonly stopped: AbortSignal;
  readonly slot: RequestSlot;
}

async function serve(
  desk: AgentContext,
  { ticket, model, records, answer, stopped, slot }: AdmittedWork,
  response: ServerResponse,
): Promise<Result<undefined>> {
  const cancel = new AbortController();
  const onClose = () => cancel.abort(refuse('pool_lost', undefined, 'edge connection closed'));
  response.once('close', onClose);
  const late = setTimeout(() => cancel.abort(refuse('deadline_passed')), ticket.deadlineMs);
  const onStop = () => cancel.abort(refuse('pool_busy', undefined, 'agent stops'));
  stopped.addEventListener('abort', onStop, { once: true });
  const onDisplaced = () => cancel.abort(refuse('pool_busy', undefined, 'displaced by a more entitled request'));
  slot.signal.addEventListener('abort', onDisplaced, { once: true });
  // The slot may have been lost while the request was admitted.
  if (slot.signal.aborted) onDisplaced();
  const cancelled = new Promise<Result<undefined>>((resolve) => {
    cancel.signal.addEventListener('abort', () => resolve(no(cancel.signal.reason as Refusal)), { once: true });
  });
  try {
    const tally = newTally(desk.now());
    const deadline = tally.began + ticket.deadlineMs;
    const { signal } = cancel;
    const onStart = slot.start;
    const done = serveTask({ desk, ticket, model, answer, records, signal, deadline, tally, onStart });
    const outcome = await Promise.race([done, cancelled]);
    desk.book.ended(model.description, tally, outcome, desk.now());
    response.off('close', onClose);
    if (!outcome.ok) {
      await answer.refuse(desk.withRetry(outcome.refusal, ticket.class));
      // Work that still runs for this request must stop; its late errors are dropped.
      done.catch(() => {});
      cancel.abort(outcome.refusal);
    }
    return outcome;
  } catch (error) {
    // A full disk, or a bug. The edge gets a refusal while the answer can still be sent.
    const refusal = isStorageFull(error) ? refuseFull('agent') : refuse('internal');
    cancel.abort(refusal);
    await answer.refuse(refusal).catch(() => answer.cut());
    throw error;
  } finally {
    clearTimeout(late);
    stopped.removeEventListener('abort', onStop);
    void records.return(undefined).catch(() => {});
  }
}
