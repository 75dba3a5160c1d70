// The body of a request as text, as far as it is not longer than it may be: a longer one is not read to its end.
import type { HttpRequest } from '@azure/functions';

/** `undefined` when it is longer than `most` bytes. */
export async function readText(
  request: Pick<HttpRequest, 'headers' | 'body'>,
  most: number,
): Promise<string | undefined> {
  if (Number(request.headers.get('content-length') ?? 0) > most) return undefined;
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of request.body ?? []) {
    length += piece.length;
    // Leaving the loop ends the stream.
    if (length > most) return undefined;
    pieces.push(piece);
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}
