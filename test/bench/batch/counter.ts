// Proxy before a server that counts billable requests.
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Counter {
  readonly port: number;
  /** Requests by the result of `name`. */
  readonly counts: Map<string, number>;
  stop(): Promise<void>;
}

export async function count(
  to: number,
  name: (method: string, target: string, headers: Readonly<Record<string, unknown>>) => string,
): Promise<Counter> {
  const counts = new Map<string, number>();
  const server = createServer((incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const key = name(method, url, headers);
    const add = (more: number) => counts.set(key, (counts.get(key) ?? 0) + more);
    if (url.endsWith('$batch')) countBatch(incoming, add);
    else add(1);
    const on = request({ host: '127.0.0.1', port: to, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    on.on('error', () => response.destroy());
    response.on('close', () => on.destroy());
    incoming.pipe(on);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    counts,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Counts each row of a transaction, since each is billed. */
function countBatch(incoming: IncomingMessage, add: (rows: number) => void): void {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    const rows = Buffer.concat(chunks)
      .toString('latin1')
      .match(/^(POST|PUT|PATCH|MERGE|DELETE) \S+ HTTP\/1\.1/gm);
    add(rows?.length ?? 1);
  });
}
