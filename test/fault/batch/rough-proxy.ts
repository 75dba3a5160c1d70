// Faulty network between a client and an emulator: loses requests and answers, delays, duplicates, and
// delivers a request after its caller saw a failure, so that a later request overtakes it.
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type ServerResponse,
  request as send,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export const fates = ['whole', 'failed', 'persisted', 'slow', 'duplicated', 'reordered'] as const;
export type Fate = (typeof fates)[number];

export interface RoughProxy {
  readonly port: number;
  /** Number of requests by fate. */
  readonly counts: Record<Fate, number>;
  /** Resolves when no request is in flight. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

export interface ProxyOptions {
  readonly target: number;
  /** Chooses the fate of a request that changes state; others get none. */
  readonly fate: () => Fate;
  /** Delay of slow or late requests, ms. */
  readonly delay: () => number;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const READS = new Set(['GET', 'HEAD']);

export async function openProxy({ target, fate, delay }: ProxyOptions): Promise<RoughProxy> {
  const counts = { whole: 0, failed: 0, persisted: 0, slow: 0, duplicated: 0, reordered: 0 };
  const onTheWay = new Set<Promise<unknown>>();

  const forward = ({ method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const request: ClientRequest = send({
        host: '127.0.0.1',
        port: target,
        method,
        path: url,
        headers,
        agent: false,
      });
      request.on('error', reject);
      request.on('response', (response) => {
        read(response).then(
          (answer) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: answer }),
          reject,
        );
      });
      request.end(body);
    });
  const later = () => new Promise((resolve) => setTimeout(resolve, delay()));

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(incoming);
    const struck = READS.has(incoming.method ?? '') ? 'whole' : fate();
    counts[struck] += 1;
    if (struck === 'failed') return void response.destroy();
    if (struck === 'reordered') {
      response.destroy();
      await later();
      await forward(incoming, body);
      return;
    }
    if (struck === 'slow') await later();
    let answer = await forward(incoming, body);
    if (struck === 'persisted') return void response.destroy();
    if (struck === 'duplicated') answer = await forward(incoming, body);
    // The connection belongs to this hop.
    const { connection: _, 'transfer-encoding': __, ...headers } = answer.headers;
    response.writeHead(answer.status, headers).end(answer.body);
  }

  const server = createServer((incoming, response) => {
    const served = serve(incoming, response)
      .catch(() => response.destroy())
      .finally(() => onTheWay.delete(served));
    onTheWay.add(served);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const idle = async () => {
    while (onTheWay.size > 0) await Promise.all(onTheWay);
  };
  return {
    port: (server.address() as AddressInfo).port,
    counts,
    idle,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function read(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
