// Bounded reader of bodies as text; a body over the bound is not read to its end.
import { readBounded } from '../../shared/read-bounded.ts';

/** A request, or an answer. */
interface Message {
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Returns the text; `undefined` when it is longer than `most` bytes. */
export async function readText({ headers, body }: Message, most: number): Promise<string | undefined> {
  if (Number(headers.get('content-length') ?? 0) > most) return undefined;
  const bytes = await readBounded(body, most);
  return bytes && new TextDecoder().decode(bytes);
}
