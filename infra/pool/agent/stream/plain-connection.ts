import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { STREAM_CLOSE_MS } from './web-socket.ts';

/**
 * Returns a connection that can be sent to another process. The state of TLS cannot: this process ends TLS and relays
 * the records, which are sealed to the request's keys, over loopback. Rejects when the system has no socket left.
 */
export async function plainConnection(connection: Duplex): Promise<Duplex> {
  if (!(connection instanceof TLSSocket)) return connection;
  const [near, far] = await connectedPair();
  relay(connection, near);
  // A connection without a listener for errors ends the process.
  far.on('error', () => far.destroy());
  return far;
}

/** Returns both ends of a new loopback connection; connections of other processes to its port are closed. */
async function connectedPair(): Promise<[near: Socket, far: Socket]> {
  const server = createServer({ noDelay: true });
  server.listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const address = server.address();
    const far = connect({ ...(address as { port: number }), host: '127.0.0.1', noDelay: true });
    const accepted = new Promise<Socket>((resolve) => {
      const waiting: Socket[] = [];
      const match = (socket: Socket) => {
        if (far.connecting) waiting.push(socket);
        else if (socket.remotePort === far.localPort) resolve(socket);
        else socket.destroy();
      };
      server.on('connection', match);
      far.once('connect', () => waiting.forEach(match));
    });
    await once(far, 'connect');
    return [await accepted, far];
  } finally {
    server.close();
  }
}

/** Copies both directions with back-pressure. The end of either side ends the other once it has taken what was sent. */
function relay(outer: TLSSocket, inner: Socket): void {
  if (outer.destroyed) inner.destroy();
  const join = (from: Socket, to: Socket) => {
    from.on('error', () => {});
    from.pipe(to);
    from.once('close', () => {
      to.destroySoon();
      // A peer that reads no more must not hold the connection.
      setTimeout(() => to.destroy(), STREAM_CLOSE_MS).unref();
    });
  };
  join(outer, inner);
  join(inner, outer);
}
