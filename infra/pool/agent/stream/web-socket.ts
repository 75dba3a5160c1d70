import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { MiB } from '../../../../shared/bytes.ts';

/** One message between edge and agent: the largest of a client, sealed, and its prefix. */
export const LINK_MESSAGE_BYTES = 2 * MiB;
/** Longest wait for an edge's close after the agent's; earlier messages are read and discarded meanwhile. */
export const STREAM_CLOSE_MS = 5_000;

/** Callbacks of a socket. */
export interface SocketListener {
  message(data: Buffer, isBinary: boolean): void;
  pong(): void;
  /** The connection is closed, by either side. */
  closed(): void;
}

/** An accepted WebSocket, with the operations that a stream uses. */
export interface StreamSocket {
  /** Must be called in the turn that accepted the socket, or messages are lost. */
  listen(listener: SocketListener): void;
  isOpen(): boolean;
  /** Sends a binary message. Calls `done` when the kernel has it, or the socket has closed. */
  send(message: Uint8Array, done: () => void): void;
  ping(): void;
  /** Stops reading. */
  pause(): void;
  resume(): void;
  /** Starts the closing handshake and destroys the connection if the peer does not answer it in time. */
  close(code: number): void;
  terminate(): void;
  /** Bytes that the kernel has not taken. */
  unsent(): number;
}

/** `closeTimeout` is missing in the types of the package. */
const options: ServerOptions & { readonly closeTimeout: number } = {
  noServer: true,
  perMessageDeflate: false,
  maxPayload: LINK_MESSAGE_BYTES,
  closeTimeout: STREAM_CLOSE_MS,
};

function adapt(socket: WebSocket): StreamSocket {
  // An error of the connection or the protocol closes the socket, which the listener learns from `closed`.
  socket.on('error', () => {});
  return {
    listen(listener) {
      socket.on('message', (data: Buffer, isBinary) => {
        // Messages behind our close frame are discarded.
        if (socket.readyState === socket.OPEN) listener.message(data, isBinary);
      });
      socket.on('pong', () => listener.pong());
      socket.on('close', () => listener.closed());
    },
    isOpen: () => socket.readyState === socket.OPEN,
    send: (message, done) => socket.send(message, { binary: true }, done),
    ping: () => socket.ping(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close(code) {
      socket.close(code);
      // The close frame of the peer is read behind whatever it sent before.
      socket.resume();
    },
    terminate: () => socket.terminate(),
    unsent: () => socket.bufferedAmount,
  };
}

/** Accepts WebSockets (RFC 6455) on connections of an HTTP server. `onRefused` answers a request that is no upgrade. */
export function createSocketServer(onRefused: (connection: Duplex) => void) {
  const server = new WebSocketServer(options);
  server.on('wsClientError', (_error, connection) => onRefused(connection));
  return {
    /** Returns `undefined` after a refusal, or when the connection has closed. */
    accept(request: Pick<IncomingMessage, 'method' | 'headers'>, connection: Duplex, head: Buffer) {
      let accepted: StreamSocket | undefined;
      server.handleUpgrade(request as IncomingMessage, connection, head, (socket) => {
        accepted = adapt(socket);
      });
      return accepted;
    },
    /** Resolves when every socket has closed; destroys those that are open after `milliseconds`. */
    async close(milliseconds: number): Promise<void> {
      const open = [...server.clients];
      const closed = open.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
      const timer = setTimeout(() => {
        for (const socket of open) socket.terminate();
      }, milliseconds);
      await Promise.all(closed);
      clearTimeout(timer);
    },
  };
}
