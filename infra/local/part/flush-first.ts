// Delays answers of a server until the writes that they acknowledge are on their way to the disk.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const READS: readonly (string | undefined)[] = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Flushes before each answer. When a write cannot be stored its answer is dropped and the connection closes.
 */
export function flushFirst(server: Server, journals: readonly { flush(): void }[]): void {
  server.prependListener('request', ({ method }: IncomingMessage, response: ServerResponse) => {
    const { writeHead } = response;
    response.writeHead = ((...head: Parameters<typeof writeHead>) => {
      try {
        for (const journal of journals) journal.flush();
      } catch (error) {
        if (!READS.includes(method)) response.destroy(error as Error);
      }
      return writeHead.apply(response, head);
    }) as typeof writeHead;
  });
}
