import type { IncomingMessage, ServerResponse } from 'node:http';
import { limits } from '../../../shared/limits.ts';
import { type Reason, type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { openStream } from '../../../shared/seal/streams.ts';
import { nodeAead } from './aead.ts';
import { openAnswer } from './answer.ts';
import { bodyOf, discard } from './body.ts';
import type { Desk, ServedModel } from './desk.ts';
import { sha256 } from './keys.ts';
import type { Ticket } from './ticket.ts';
import { transcribe } from './transcribe.ts';

const base64url = /^[A-Za-z0-9_-]+$/;

/** A request that was let in: nothing of its body was read yet. */
interface Admitted {
  readonly ticket: Ticket;
  readonly model: ServedModel;
  readonly answerKey: Uint8Array;
  readonly requestKey: Uint8Array;
}

/** Everything that is answered in plain HTTP: who asks, whether it is for us, whether there is room. */
export async function admit(desk: Desk, headers: IncomingMessage['headers']): Promise<Result<Admitted>> {
  const token = headers['auricle-ticket'];
  const encText = headers['auricle-enc'];
  if (typeof token !== 'string' || typeof encText !== 'string' || !base64url.test(encText)) {
    return no(refuse('ticket_invalid', undefined, 'headers'));
  }
  if (encText.length > limits.encapsulatedCharacters.value) return no(refuse('ticket_invalid', undefined, 'enc'));
  const now = desk.now();
  const read = await desk.readTicket(token, now);
  if (!read.ok) return read;
  const ticket = read.value;
  const enc = new Uint8Array(Buffer.from(encText, 'base64url'));
  if (sha256(enc) !== ticket.enc) return no(refuse('ticket_invalid', undefined, 'enc'));
  const model = desk.model(ticket.model);
  if (!model) return no(refuse('misdirected', undefined, 'model'));
  if (desk.full()) return no(refuse('pool_busy'));
  const fresh = desk.replays.admit(ticket, now);
  if (!fresh.ok) return fresh;
  const setup = await desk.keys.setup({ enc, suite: ticket.suite, attestationDigest: ticket.att, now });
  if (!setup.ok) return setup;
  const { request, answer } = await setup.value.keysFor(token);
  return ok({ ticket, model, requestKey: request, answerKey: answer });
}

function answerPlainly(response: ServerResponse, incoming: IncomingMessage, { reason }: Refusal, status: number) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ reason }));
  discard(incoming);
}

/** Statuses of what is refused before the answer starts; every other reason is a bug there. */
const plain: Partial<Record<Reason, number>> = {
  ticket_invalid: 403,
  ticket_replayed: 403,
  misdirected: 421,
  seal_broken: 400,
  pool_busy: 503,
};

/** One short request from its first header to its last record. Never rejects. */
export async function serveShort(desk: Desk, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  incoming.on('error', () => {});
  response.on('error', () => {});
  const entry = desk.enter();
  try {
    const admitted = await admit(desk, incoming.headers);
    if (!admitted.ok) {
      const status = plain[admitted.refusal.reason] ?? 500;
      desk.report(admitted.refusal);
      return answerPlainly(response, incoming, admitted.refusal, status);
    }
    const outcome = await work(desk, admitted.value, incoming, response, entry.signal);
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
  admitted: Admitted,
  incoming: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<Result<undefined>> {
  const { ticket, model } = admitted;
  const sealer = await createSealer(admitted.answerKey, ticket.suite, nodeAead);
  const opener = await createOpener(admitted.requestKey, ticket.suite, nodeAead);
  const answer = openAnswer(response, sealer, desk.keepaliveMs);
  const records = openStream(bodyOf(incoming), opener);
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
    const deadline = desk.now() + ticket.deadlineMs;
    const done = transcribe({ desk, ticket, model, answer, records, signal: cancel.signal, deadline });
    const outcome = await Promise.race([done, cancelled]);
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
