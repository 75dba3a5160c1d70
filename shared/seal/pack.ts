import { limits } from '../limits.ts';
import { cutAll, sizeOf, writeLength } from './framing.ts';

/** A text stands for its UTF-8. */
export type Message = Uint8Array | string;

const encoder = new TextEncoder();

/** Several messages as one plaintext: each has its length before it, as records have (`framing.ts`). */
export const packMessages = (messages: readonly Message[]): Uint8Array<ArrayBuffer> => pack(messages, undefined);

/** Packs into memory that the next call reuses; the caller copies the result before that. */
export const packForNow = (messages: readonly Message[]): Uint8Array<ArrayBuffer> => pack(messages, room);

const room = new Uint8Array(limits.packRoomBytes.value);

function pack(messages: readonly Message[], place: Uint8Array<ArrayBuffer> | undefined): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const message of messages) length += sizeOf(message.length) + message.length;
  const packed = place && length <= place.length ? place.subarray(0, length) : new Uint8Array(length);
  let at = 0;
  for (const message of messages) {
    at = writeLength(packed, at, message.length);
    if (typeof message !== 'string') packed.set(message, at);
    // Its length is not that of its bytes.
    else if (!writeAscii(packed, at, message)) return pack(messages.map(encode), place);
    at += message.length;
  }
  return packed;
}

function writeAscii(into: Uint8Array<ArrayBuffer>, at: number, text: string): boolean {
  const { read, written } = encoder.encodeInto(text, into.subarray(at, at + text.length));
  return read === text.length && written === text.length;
}

const encode = (message: Message): Uint8Array => (typeof message === 'string' ? encoder.encode(message) : message);

/** The messages again; `undefined` when there is none, or the bytes are not those of whole messages. */
export function unpackMessages(packed: Uint8Array): Uint8Array[] | undefined {
  const messages = cutAll(packed, 0, packed.length);
  return messages && messages.length > 0 ? messages : undefined;
}
