import type { IncomingMessage, ServerResponse } from 'node:http';
import { limits } from '../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { openStream } from '../../../shared/seal/streams.ts';
import { isStorageFull, refuseFull } from '../../../shared/storage-full.ts';
import { admit, type Doorway, plainRefusal } from './admit.ts';
import { nodeAead } from './aead.ts';
import { type Answer, openAnswer } from './answer.ts';
import { bodyOf, discard } from './body.ts';
import type { Desk } from './desk.ts';
import { type AdmittedOnLane, admitOnLane } from './lanes.ts';
import { newTally } from './live/tally.ts';
import type { RequestSlot } from './request-slots.ts';
import { serveTask } from './task.ts';
import type { Facts } from './ticket.ts';

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, refusal: Refusal) {
  const { status, body } = plainRefusal(refusal);
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  discard(incoming);
}

/** A request that was let in, whichever way its keys were agreed. */
interface Entered extends Pick<AdmittedOnLane, 'ticket' | 'model' | 'records'> {
  readonly answer: Answer;
}

async function enter(
  desk: Desk,
  incoming: IncomingMessage,
  response: ServerResponse,
  takeSlot: Doorway['enter'],
): Promise<Result<Entered>> {
  const token = incoming.headers['auricle-ticket'];
  if (typeof token === 'string' && incoming.headers['auricle-enc'] === undefined) {
    const admitted = await admitOnLane(desk, token, incoming, takeSlot);
    if (!admitted.ok) return admitted;
    const { sealer, ...rest } = admitted.value;
    return ok({ ...rest, answer: openAnswer(response, sealer, desk.keepaliveMs, limits.agentHoldMs.value) });
  }
  const admitted = await admit(desk, incoming.headers, { enter: takeSlot });
  if (!admitted.ok) return admitted;
  const { ticket, model, answerKey, requestKey } = admitted.value;
  const sealer = await createSealer(answerKey, ticket.suite, nodeAead);
  const opener = await createOpener(requestKey, ticket.suite, nodeAead);
  const answer = openAnswer(response, sealer, desk.keepaliveMs);
  return ok({ ticket, model, records: openStream(bodyOf(incoming), opener), answer });
}

/** One short request from its first header to its last record. Never rejects. */
export async function serveShort(desk: Desk, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
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
    const admitted = await enter(desk, incoming, response, takeSlot);
    if (!admitted.ok || !slot?.ok) {
      const refusal = admitted.ok ? refuse('internal', undefined, 'no slot') : admitted.refusal;
      desk.report(refusal);
      return answerPlainly(response, incoming, refusal);
    }
    const outcome = await work(desk, admitted.value, response, { stopped: entry.signal, slot: slot.value });
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

interface AdmittedWork {
  /** Aborts when the agent stops. */
  readonly stopped: AbortSignal;
  readonly slot: RequestSlot;
}

async function work(
  desk: Desk,
  { ticket, model, records, answer }: Entered,
  response: ServerResponse,
  { stopped, slot }: AdmittedWork,
): Promise<Result<undefined>> {
  const cancel = new AbortController();
  // The edge is gone: nobody will read the answer, so nobody should work on it.
  const onClose = () => cancel.abort(refuse('pool_lost', undefined, 'edge connection closed'));
  response.once('close', onClose);
  const late = setTimeout(() => cancel.abort(refuse('deadline_passed')), ticket.deadlineMs);
  const onStop = () => cancel.abort(refuse('pool_busy', undefined, 'agent stops'));
  stopped.addEventListener('abort', onStop, { once: true });
  const onDisplaced = () => cancel.abort(refuse('pool_busy', undefined, 'displaced by a more entitled request'));
  slot.signal.addEventListener('abort', onDisplaced, { once: true });
  // Displaced while the keys were being agreed.
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
      // What is still running for this request must stop, and its late errors belong to nobody.
      done.catch(() => {});
      cancel.abort(outcome.refusal);
    }
    return outcome;
  } catch (error) {
    // A bug, unless the disk is full: the edge learns it, unless not even that can be sent.
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
