// The body of a request or an answer as text, as far as it is not longer than it may be: a longer one is not read to its end.
import { readBounded } from '../shared/read-bounded.ts';

/** A request, or an answer. */
interface Message {
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** `undefined` when it is longer than `most` bytes. */
export async function readText({ headers, body }: Message, most: number): Promise<string | undefined> {
  if (Number(headers.get('content-length') ?? 0) > most) return undefined;
  const bytes = await readBounded(body, most);
  return bytes && new TextDecoder().decode(bytes);
}
