import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { limits } from '../../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';
import { createOpener, createSealer } from '../../../../shared/seal/records.ts';
import { admit, plainRefusal } from '../admit.ts';
import { nodeAead } from '../aead.ts';
import type { Desk } from '../desk.ts';
import { bugFields } from '../log.ts';
import { serveStream } from './stream.ts';
import { createSocketServer } from './web-socket.ts';

const PATH = '/v1/stream';

/** Refuses an upgrade: plain HTTP, then the connection ends. */
function answerPlainly(connection: Duplex, status: number, body: string) {
  const head = [`HTTP/1.1 ${status} Refused`, 'content-type: application/json', `content-length: ${body.length}`];
  connection.end(`${head.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`);
  setTimeout(() => connection.destroy(), limits.agentGoodbyeMs.value).unref();
}

/** Serves the live streams of an agent on the upgrades of its HTTP server. */
export function createStreamDoor(desk: Desk) {
  const sockets = createSocketServer((connection) => answerPlainly(connection, 400, '{"reason":"upgrade_missing"}'));

  function report({ reason, detail }: Refusal) {
    desk.live.metrics.ended(reason);
    desk.log('stream-refused', { reason, ...(detail !== undefined && { detail }) });
  }

  /** Serves one stream from its first header to its last record. Never rejects. */
  async function serve(incoming: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    // A connection without a listener for errors ends the process.
    connection.on('error', () => connection.destroy());
    if ((incoming.url ?? '').split('?')[0] !== PATH) {
      return answerPlainly(connection, 404, '{"reason":"route_unknown"}');
    }
    let onDrain = () => {};
    const entry = desk.streams.enter(() => onDrain());
    try {
      const admitted = await admit(desk, incoming.headers, {
        enter: () => (desk.streams.full() || !desk.live.engineReady() ? no(refuse('pool_busy')) : ok(undefined)),
        serves: ({ description }) => description.live === true,
      });
      if (!admitted.ok) {
        report(admitted.refusal);
        const { status, body } = plainRefusal(admitted.refusal);
        return answerPlainly(connection, status, body);
      }
      const { ticket, model, answerKey, requestKey } = admitted.value;
      const sealer = await createSealer(answerKey, ticket.suite, nodeAead);
      const opener = await createOpener(requestKey, ticket.suite, nodeAead);
      const socket = sockets.accept(incoming, connection, head);
      if (!socket) return;
      const outcome = await serveStream({
        desk,
        ticket,
        model,
        sealer,
        opener,
        socket,
        stopped: entry.signal,
        onDrain(tell) {
          onDrain = tell;
        },
      });
      if (outcome.ok) desk.live.metrics.ended('ok');
      else report(outcome.refusal);
    } catch (error) {
      desk.live.metrics.ended('internal');
      desk.log('bug', bugFields(error));
      connection.destroy();
    } finally {
      entry.leave();
    }
  }

  return {
    serve,
    /** Resolves when every socket has closed; destroys those that are open after so many milliseconds. */
    close: sockets.close,
  };
}
