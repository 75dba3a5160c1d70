import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plainConnection } from '../../../../infra/pool/agent/stream/plain-connection.ts';
import { makeCertificate } from '../../../fake/certificate.ts';

const accepted: ((plain: Socket) => void)[] = [];
const server = createServer(makeCertificate(), async (socket) => {
  socket.on('error', () => socket.destroy());
  accepted.shift()?.((await plainConnection(socket)) as Socket);
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

interface Met {
  readonly client: TLSSocket;
  readonly plain: Socket;
}

/** Connects a client by TLS; returns it with the plain end of the agent. */
async function meet(): Promise<Met> {
  const plain = new Promise<Socket>((resolve) => accepted.push(resolve));
  const client = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
  });
  client.on('error', () => {});
  await once(client, 'secureConnect');
  return { client, plain: await plain };
}

type Order = (met: Met) => readonly [Socket, Socket];
const sides: readonly (readonly [string, Order])[] = [
  ['client', ({ client, plain }) => [client, plain]],
  ['worker', ({ client, plain }) => [plain, client]],
];

it.each(sides)('A21 relays all bytes that the %s sends before its end', async (_, order) => {
  const [from, to] = order(await meet());
  const sent = Buffer.alloc(3_000_000, 'sealed');
  const arrived = buffer(to);
  from.end(sent);
  expect((await arrived).equals(sent)).toBe(true);
});

it.each(sides)('A21 ends the other side when the %s breaks off', async (_, order) => {
  const [broken, other] = order(await meet());
  const closed = once(other.resume(), 'close');
  broken.destroy();
  await closed;
});
