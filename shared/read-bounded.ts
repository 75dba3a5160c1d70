import { joined } from './bytes.ts';

/** All of a body; `undefined` when it has more than `most` bytes: it is left there, which ends its stream. */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  most: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    length += piece.length;
    if (length > most) return undefined;
    pieces.push(piece);
  }
  return joined(pieces);
}
