import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { isStorageFull, refuseFull } from '../../../../shared/storage-full.ts';
import { type Span, startSpan } from '../../../../shared/trace/span.ts';
import { newTally } from '../live-counts/tally.ts';
import { plainRefusal } from '../request/admit.ts';
import type { AdmittedRequest as TaskRequest } from '../request/admitted-request.ts';
import type { AgentContext } from '../request/agent-context.ts';
import { type Answer, openAnswer } from '../request/answer.ts';
import type { RequestSlot } from '../request/request-slots.ts';
import type { Facts } from '../request/ticket.ts';
import { discard } from './body.ts';
import { type AdmittedRequest, admitRequest } from './sealed-session.ts';
import { serveTask } from './task.ts';

/**
 * Time within which a complete answer leaves in one piece: it halves the cost of both sides, and no caller
 * feels the wait.
 */
const AGENT_HOLD_MS = 100;

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, refusal: Refusal) {
  const { status, body } = plainRefusal(refusal);
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  discard(incoming);
}

/** Serves one unary request (`POST /v1/short`) from its first header to its last record. Never rejects. */
export async function serveUnary(
  context: AgentContext,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  incoming.on('error', () => {});
  response.on('error', () => {});
  const entry = context.enter();
  const ending = openEnding(context, incoming);
  let slot: Result<RequestSlot> | undefined;
  const takeSlot = ({ jti, class: name, model, tenant, deadlineMs }: Facts) => {
    ending.name(jti, model);
    const taken = context.takeSlot({ class: name, tenant, deadline: context.now() + deadlineMs });
    slot = taken.ok ? taken : no(context.withRetry(taken.refusal, name));
    return slot;
  };
  try {
    const admitted = await admitRequest(context, incoming, takeSlot);
    if (!admitted.ok || !slot?.ok) {
      const refusal = admitted.ok ? refuse('internal', undefined, 'no slot') : admitted.refusal;
      ending.end(refusal);
      return answerPlainly(response, incoming, refusal);
    }
    const answer = openAnswer(response, admitted.value.sealer, context.keepaliveMs, AGENT_HOLD_MS);
    const work = { ...admitted.value, answer, stopped: entry.signal, slot: slot.value, span: ending.span };
    const outcome = await serve(context, work, response);
    ending.end(outcome.ok ? undefined : outcome.refusal);
  } catch (error) {
    ending.fail(error);
    response.destroy();
  } finally {
    if (slot?.ok) slot.value.leave();
    entry.leave();
  }
}

/** The end of a request for operators: metrics, log and span. */
function openEnding(context: AgentContext, { headers }: IncomingMessage) {
  const began = context.now();
  const { traceparent } = headers;
  const header = typeof traceparent === 'string' ? traceparent : undefined;
  const span = startSpan({ name: 'agent', kind: 'server', traceparent: header }, context.tracer);
  let named: { request: string; model: string } | undefined;
  const endSpan = (reason?: string) =>
    span?.end({ 'auricle.request': named?.request, 'auricle.model': named?.model }, reason);
  return {
    span,
    name(request: string, model: string): void {
      named = { request, model };
    },
    /** Reports a served request, or a refused one. */
    end(refusal?: Refusal): void {
      endSpan(refusal?.reason);
      if (refusal) {
        context.report(refusal, named?.request);
        return;
      }
      context.metrics.request('ok');
      if (context.logRequests) context.log('request', { ...named, milliseconds: context.now() - began });
    },
    fail(error: unknown): void {
      endSpan('internal');
      context.bug(error, named?.request);
    },
  };
}

interface AdmittedWork extends Pick<AdmittedRequest, 'ticket' | 'model' | 'records'> {
  readonly answer: Answer;
  /** Aborts when the agent stops. */
  readonly stopped: AbortSignal;
  readonly slot: RequestSlot;
  readonly span: Span | undefined;
}

async function serve(
  context: AgentContext,
  { ticket, model, records, answer, stopped, slot, span }: AdmittedWork,
  response: ServerResponse,
): Promise<Result<undefined>> {
  const cancel = new AbortController();
  const onClose = () => cancel.abort(refuse('pool_lost', undefined, 'edge connection closed'));
  response.once('close', onClose);
  // The edge may have gone while the request was admitted.
  if (response.destroyed) onClose();
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
    const tally = newTally(context.now());
    const deadline = tally.began + ticket.deadlineMs;
    const { signal } = cancel;
    const onStart = slot.start;
    const done = serveLeased({ context, ticket, model, answer, records, signal, deadline, tally, span, onStart });
    const outcome = await Promise.race([done, cancelled]);
    context.book.ended(model.description, tally, outcome, context.now());
    response.off('close', onClose);
    if (!outcome.ok) {
      await answer.refuse(context.withRetry(outcome.refusal, ticket.class));
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

/** Serves a request while its model is leased; one that is not loaded is loaded first. */
async function serveLeased(request: TaskRequest): Promise<Result<undefined>> {
  const leased = await request.context.lease(request.model, request.signal);
  if (!leased) return no(refuse('pool_busy', undefined, 'the model is not loaded yet'));
  try {
    return await serveTask({ ...request, model: leased.model });
  } finally {
    leased.release();
  }
}
