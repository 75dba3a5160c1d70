import type { IncomingMessage, ServerResponse } from 'node:http';
import { limits } from '../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { openStream } from '../../../shared/seal/streams.ts';
import { admit, plainRefusal } from './admit.ts';
import { nodeAead } from './aead.ts';
import { type Answer, openAnswer } from './answer.ts';
import { bodyOf, discard } from './body.ts';
import type { Desk } from './desk.ts';
import { type AdmittedOnLane, admitOnLane } from './lanes.ts';
import { newTally } from './live/tally.ts';
import { serveTask } from './task.ts';

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, refusal: Refusal) {
  const { status, body } = plainRefusal(refusal);
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  discard(incoming);
}

/** A request that was let in, whichever way its keys were agreed. */
interface Entered extends Pick<AdmittedOnLane, 'ticket' | 'model' | 'records'> {
  readonly answer: Answer;
}

async function enter(desk: Desk, incoming: IncomingMessage, response: ServerResponse): Promise<Result<Entered>> {
  const token = incoming.headers['auricle-ticket'];
  if (typeof token === 'string' && incoming.headers['auricle-enc'] === undefined) {
    const admitted = await admitOnLane(desk, token, incoming);
    if (!admitted.ok) return admitted;
    const { sealer, ...rest } = admitted.value;
    return ok({ ...rest, answer: openAnswer(response, sealer, desk.keepaliveMs, limits.agentHoldMs.value) });
  }
  const admitted = await admit(desk, incoming.headers, { full: desk.full });
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
  try {
    const admitted = await enter(desk, incoming, response);
    if (!admitted.ok) {
      desk.report(admitted.refusal);
      return answerPlainly(response, incoming, admitted.refusal);
    }
    const outcome = await work(desk, admitted.value, response, entry.signal);
    if (!outcome.ok) desk.report(outcome.refusal);
    else desk.metrics.request('ok');
  } catch (error) {
    desk.bug(error);
    response.destroy();
  } finally {
    entry.leave();
  }
}

async function work(
  desk: Desk,
  { ticket, model, records, answer }: Entered,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<Result<undefined>> {
  const cancel = new AbortController();
  // The edge is gone: nobody will read the answer, so nobody should work on it.
  const onClose = () => cancel.abort(refuse('pool_lost', undefined, 'edge connection closed'));
  response.once('close', onClose);
  const late = setTimeout(() => cancel.abort(refuse('deadline_passed')), ticket.deadlineMs);
  const onStop = () => cancel.abort(refuse('pool_busy', undefined, 'agent stops'));
  stopped.addEventListener('abort', onStop, { once: true });
  const cancelled = new Promise<Result<undefined>>((resolve) => {
    cancel.signal.addEventListener('abort', () => resolve(no(cancel.signal.reason as Refusal)), { once: true });
  });
  try {
    const tally = newTally(desk.now());
    const deadline = tally.began + ticket.deadlineMs;
    const done = serveTask({ desk, ticket, model, answer, records, signal: cancel.signal, deadline, tally });
    const outcome = await Promise.race([done, cancelled]);
    desk.book.ended(model.description, tally, outcome, desk.now());
    response.off('close', onClose);
    if (!outcome.ok) {
      await answer.refuse(outcome.refusal);
      // What is still running for this request must stop, and its late errors belong to nobody.
      done.catch(() => {});
      cancel.abort(outcome.refusal);
    }
    return outcome;
  } catch (error) {
    // A bug: the edge learns that it was one, unless not even that can be sent.
    cancel.abort(refuse('internal'));
    await answer.refuse(refuse('internal')).catch(() => answer.cut());
    throw error;
  } finally {
    clearTimeout(late);
    stopped.removeEventListener('abort', onStop);
    void records.return(undefined).catch(() => {});
  }
}
