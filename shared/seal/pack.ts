import { cutAll, sizeOf, writeLength } from './framing.ts';

/** A string stands for its UTF-8 bytes. */
export type Message = Uint8Array | string;

const encoder = new TextEncoder();

/** Packs several messages into one plaintext: each has its length before it, as records have (`framing.ts`). */
export function packMessages(messages: readonly Message[]): Uint8Array<ArrayBuffer> {
  const parts = messages.map((message) => (typeof message === 'string' ? encoder.encode(message) : message));
  const packed = new Uint8Array(parts.reduce((sum, { length }) => sum + sizeOf(length) + length, 0));
  let at = 0;
  for (const part of parts) {
    at = writeLength(packed, at, part.length);
    packed.set(part, at);
    at += part.length;
  }
  return packed;
}

/** Returns the messages, or `undefined` when there is none or the bytes are not whole messages. */
export function unpackMessages(packed: Uint8Array): Uint8Array[] | undefined {
  const messages = cutAll(packed, 0, packed.length);
  return messages && messages.length > 0 ? messages : undefined;
}
