import type { ServerResponse } from 'node:http';
import { type CallEvent, encodeBody } from '../../../../shared/kserve/call.ts';
import { type Refusal, shortened } from '../../../../shared/refusal.ts';
import type { PackingSealer } from '../../../../shared/seal/records.ts';
import type { AnswerEvent } from '../../../../shared/speech/transcript.ts';
import { ANSWER_EVENT_BYTES } from '../settings/limits.ts';

/** The sealed answer of one request. */
export interface Answer {
  /** Sends an event and waits while the edge is slow to read. A `final` or `refusal` ends the answer. */
  send(event: AnswerEvent | CallEvent): Promise<void>;
  /** Sends bytes of a body that an event has announced, at most `ANSWER_EVENT_BYTES`; waits likewise. */
  sendBody(bytes: Uint8Array): Promise<void>;
  refuse(refusal: Refusal): Promise<void>;
  /** Ends without a final record: the other side will know that it was cut. */
  cut(): void;
}

/** A message in a packed record has its length before it. */
const LENGTH_BYTES = 4;

/** Reports whether the caller asked for the answer as a stream, which is never held. */
function isForStream(event: AnswerEvent | CallEvent): boolean {
  if (event.type === 'form') return event.fields.stream !== undefined;
  return event.type === 'answer' && event.bytes === undefined;
}

/** Resolves once the edge has read enough for more, or is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/** Returns the event of a refusal, shortened: one over the bound of an event throws, and the edge retries elsewhere. */
function refusalEvent(refusal: Refusal): AnswerEvent {
  const { reason, params, retryAfter } = shortened(refusal);
  return {
    type: 'refusal',
    reason,
    ...(params && { params: { ...params } }),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

const HEADERS = { 'content-type': 'application/auricle-sealed', 'cache-control': 'no-store' };

/**
 * Opens the sealed answer of a request. Events wait up to `holdMs` for the rest: an answer that is complete by then leaves
 * in one piece, with its length. Any other starts then, before the body was read.
 */
export function openAnswer(response: ServerResponse, sealer: PackingSealer, keepaliveMs: number, holdMs = 0): Answer {
  let ended = false;
  /** Records must leave in the order they were sealed in. */
  let last: Promise<void> = Promise.resolve();
  /** Events that wait for the rest of the answer. */
  let held: Uint8Array[] | undefined = holdMs > 0 ? [] : undefined;
  let heldBytes = 0;
  if (!held) response.writeHead(200, HEADERS);

  /** Sends what waits; later events leave at once. */
  async function letGo(): Promise<void> {
    if (!held) return;
    const messages = held;
    held = undefined;
    clearTimeout(holding);
    if (response.destroyed) return;
    response.writeHead(200, HEADERS);
    if (messages.length > 0) response.write(await sealer.pack(messages, false));
    else response.flushHeaders();
  }

  async function write(kind: string, bytes: Uint8Array, final: boolean, waits: boolean): Promise<void> {
    if (bytes.length > ANSWER_EVENT_BYTES) throw new Error(`event ${kind} is too long`);
    if (heldBytes + bytes.length > ANSWER_EVENT_BYTES) await letGo();
    if (held) {
      held.push(bytes);
      heldBytes += bytes.length + LENGTH_BYTES;
      if (!final) return waits ? undefined : letGo();
      clearTimeout(holding);
      const record = await sealer.pack(held, true);
      held = undefined;
      if (!response.destroyed) response.writeHead(200, { ...HEADERS, 'content-length': record.length }).end(record);
      return;
    }
    const record = await sealer.seal(bytes, final);
    if (response.destroyed) return;
    const flowing = response.write(record);
    if (final) response.end();
    else if (!flowing) await drained(response);
  }

  const holding = setTimeout(() => {
    last = last.then(letGo);
    last.catch(() => cut());
  }, holdMs);

  function send(event: AnswerEvent | CallEvent): Promise<void> {
    if (ended) return last;
    const final = event.type === 'final' || event.type === 'refusal';
    if (final) {
      ended = true;
      clearInterval(keepalive);
    }
    const bytes = new TextEncoder().encode(JSON.stringify(event));
    last = last.then(() => write(event.type, bytes, final, !isForStream(event)));
    return last;
  }

  function sendBody(bytes: Uint8Array): Promise<void> {
    if (!ended) last = last.then(() => write('body', encodeBody(bytes), false, true));
    return last;
  }

  let beating = false;
  const keepalive = setInterval(() => {
    // One at a time: for an edge that does not read, keepalives must not pile up.
    if (beating) return;
    beating = true;
    send({ type: 'keepalive' }).then(
      () => {
        beating = false;
      },
      () => cut(),
    );
  }, keepaliveMs);
  keepalive.unref();
  response.once('close', () => {
    clearInterval(keepalive);
    clearTimeout(holding);
  });

  function cut() {
    ended = true;
    clearInterval(keepalive);
    response.destroy();
  }

  return { send, sendBody, refuse: (refusal) => send(refusalEvent(refusal)), cut };
}
