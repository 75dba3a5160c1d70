import type { ServerResponse } from 'node:http';
import { limits } from '../../../shared/limits.ts';
import type { Refusal } from '../../../shared/refusal.ts';
import type { Sealer } from '../../../shared/seal/records.ts';
import type { AnswerEvent } from '../../../shared/speech/transcript.ts';

/** The sealed answer of one request. */
export interface Answer {
  /** Sends an event and waits while the edge is slow to read. A `final` or `refusal` ends the answer. */
  send(event: AnswerEvent): Promise<void>;
  refuse(refusal: Refusal): Promise<void>;
  /** Ends without a final record: the other side will know that it was cut. */
  cut(): void;
}

/** Until the edge has read enough for more, or is gone. */
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

/** Status and headers go out with the first event, before any of the body was read. */
export function openAnswer(response: ServerResponse, sealer: Sealer, keepaliveMs: number): Answer {
  response.writeHead(200, { 'content-type': 'application/auricle-sealed', 'cache-control': 'no-store' });
  let ended = false;
  /** Records must leave in the order they were sealed in. */
  let last: Promise<void> = Promise.resolve();

  async function write(event: AnswerEvent, final: boolean): Promise<void> {
    const bytes = new TextEncoder().encode(JSON.stringify(event));
    if (bytes.length > limits.answerEventBytes.value) throw new Error(`event ${event.type} is too long`);
    const record = await sealer.seal(bytes, final);
    if (response.destroyed) return;
    const flowing = response.write(record);
    if (final) response.end();
    else if (!flowing) await drained(response);
  }

  function send(event: AnswerEvent): Promise<void> {
    if (ended) return last;
    const final = event.type === 'final' || event.type === 'refusal';
    if (final) {
      ended = true;
      clearInterval(keepalive);
    }
    last = last.then(() => write(event, final));
    return last;
  }

  let beating = false;
  const keepalive = setInterval(() => {
    // One at a time: an edge that does not read must not find an hour of keepalives waiting.
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
  response.once('close', () => clearInterval(keepalive));

  function cut() {
    ended = true;
    clearInterval(keepalive);
    response.destroy();
  }

  return {
    send,
    refuse: ({ reason, params }) => send({ type: 'refusal', reason, ...(params && { params: { ...params } }) }),
    cut,
  };
}
