import { cutAll, sizeOf, writeLength } from './framing.ts';

/** Several messages as one plaintext: each has its length before it, as records have (`framing.ts`). */
export function packMessages(messages: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const message of messages) length += sizeOf(message.length) + message.length;
  const packed = new Uint8Array(length);
  let at = 0;
  for (const message of messages) {
    at = writeLength(packed, at, message.length);
    packed.set(message, at);
    at += message.length;
  }
  return packed;
}

/** The messages again; `undefined` when there is none, or the bytes are not those of whole messages. */
export function unpackMessages(packed: Uint8Array): Uint8Array[] | undefined {
  const messages = cutAll(packed, 0, packed.length);
  return messages && messages.length > 0 ? messages : undefined;
}
