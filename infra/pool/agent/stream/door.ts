import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
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
import { upgradeAnswer } from './upgrade.ts';
import { openWebSocket, type WebSocket } from './web-socket.ts';

const PATH = '/v1/stream';

/** Answers an upgrade that is not to be: plain HTTP, then the connection ends. */
function answerPlainly(socket: Duplex, status: number, body: string) {
  const head = [`HTTP/1.1 ${status} Refused`, 'content-type: application/json', `content-length: ${body.length}`];
  socket.end(`${head.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`);
  // Who does not hang up is hung up on.
  setTimeout(() => socket.destroy(), limits.agentGoodbyeMs.value).unref();
}

/** The door for live streams of an agent: takes the upgrades of its HTTP server. */
export function createStreamDoor(desk: Desk) {
  /** Connections that are WebSockets. */
  const open = new Set<Socket>();

  function report({ reason, detail }: Refusal) {
    desk.live.metrics.ended(reason);
    desk.log('stream-refused', { reason, ...(detail !== undefined && { detail }) });
  }

  /** Whoever gets the socket listens to it in the same turn, before its first message can be lost. */
  function upgrade(incoming: IncomingMessage, socket: Socket, head: Buffer): WebSocket | undefined {
    if (!socket.readable || !socket.writable) {
      socket.destroy();
      return undefined;
    }
    const answer = upgradeAnswer(incoming);
    if (answer === undefined) {
      answerPlainly(socket, 400, '{"reason":"upgrade_missing"}');
      return undefined;
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    return openWebSocket({ connection: socket, answer, head, most: limits.streamLinkBytes.value });
  }

  /** One stream from its first header to its last record. Never rejects. */
  async function serve(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // Until there is a WebSocket, nobody else listens to what happens to the connection.
    socket.on('error', () => socket.destroy());
    if ((incoming.url ?? '').split('?')[0] !== PATH) return answerPlainly(socket, 404, '{"reason":"route_unknown"}');
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
        return answerPlainly(socket, status, body);
      }
      const { ticket, model, answerKey, requestKey } = admitted.value;
      const sealer = await createSealer(answerKey, ticket.suite, nodeAead);
      const opener = await createOpener(requestKey, ticket.suite, nodeAead);
      // The platform upgrades what came in over TCP only.
      const opened = upgrade(incoming, socket as Socket, head);
      if (!opened) return;
      const outcome = await serveStream({
        desk,
        ticket,
        model,
        sealer,
        opener,
        socket: opened,
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
      socket.destroy();
    } finally {
      entry.leave();
    }
  }

  return {
    serve,
    /** Every socket ends, at the latest after so many milliseconds: last events and farewells get out in them. */
    async close(milliseconds: number): Promise<void> {
      const left = [...open];
      const gone = left.map((socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())));
      const late = setTimeout(() => {
        for (const socket of left) socket.destroy();
      }, milliseconds);
      await Promise.all(gone);
      clearTimeout(late);
    },
  };
}
