// Answers of a server wait until what they acknowledge is on its way to the disk.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const READS: readonly (string | undefined)[] = ['GET', 'HEAD', 'OPTIONS'];

/** Flushes before each answer. An answer to a write that cannot be kept is not sent: the connection closes. */
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
