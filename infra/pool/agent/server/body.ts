import type { IncomingMessage } from 'node:http';
import { BODY_BYTES } from '../../../../shared/speech/limits.ts';

/** Discards the rest of a body, so that the answer gets through; a body beyond all bounds is cut off. */
export function discard(incoming: IncomingMessage): void {
  let left = BODY_BYTES;
  incoming.on('error', () => {});
  incoming.on('data', (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) incoming.destroy();
  });
}

/**
 * The body of a request as a stream that reads only on demand. Cancelling it does not close the connection, which the
 * answer still needs: the rest of the body is read and thrown away.
 */
export function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  incoming.on('error', () => {});
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
        discard(incoming);
      },
    },
    { highWaterMark: 0 },
  );
}
