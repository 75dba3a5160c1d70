/** What the bytes of a peer say. Nothing is said any more once it closes or is broken. */
export interface FrameEars {
  /** Nobody else has these bytes, nor changes them. */
  message(data: Buffer, isBinary: boolean): void;
  ping(payload: Buffer): void;
  pong(): void;
  /** `code` is what it gave, if it gave one. */
  close(code: number | undefined): void;
  /** It sent what it must not, or too much; `code` is to be told. */
  broken(code: number): void;
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
/** RFC 6455 §7.4.1. */
const wrong = { protocol: 1002, tooLong: 1009 } as const;

const FIN = 0x80;
const RESERVED = 0x70;
const CONTROL = 0x08;
const MASKED = 0x80;
const MASK_BYTES = 4;
/** Of a frame that control frames may have, and that a head of two bytes can say. */
export const SHORT_MAX = 125;
/** Memory for a frame that comes in pieces grows with what came of it, from this on: its length is only a claim. */
const FIRST_ROOM = 65_536;

const nothing = Buffer.alloc(0);
const known = new Set<number>(Object.values(opcodes));

/** Codes that a peer may give (§7.4.2). */
const isCode = (code: number) =>
  (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);

/** Of the memory that was looked at last, which is mostly that of the next frame, too. */
let words: Int32Array = new Int32Array(0);

/** Whole words where they lie even, as every piece of sound comes through here. Words are little-endian, as memory is. */
function unmask(bytes: Buffer, from: number, to: number, key: number): void {
  let mask = key;
  let at = from;
  if (words.buffer !== bytes.buffer) words = new Int32Array(bytes.buffer, 0, bytes.buffer.byteLength >> 2);
  for (; at < to && ((bytes.byteOffset + at) & 3) !== 0; at++) {
    bytes[at] = (bytes[at] as number) ^ (mask & 0xff);
    mask = (mask >>> 8) | (mask << 24);
  }
  const end = (bytes.byteOffset + to) >> 2;
  for (let word = (bytes.byteOffset + at) >> 2; word < end; word++) words[word] = (words[word] as number) ^ mask;
  at = Math.max(at, (end << 2) - bytes.byteOffset);
  for (; at < to; at++) {
    bytes[at] = (bytes[at] as number) ^ (mask & 0xff);
    mask = (mask >>> 8) | (mask << 24);
  }
}

/** Memory for messages to come. One lives no longer than it takes to open it, so that many can share a piece. */
let slab: Buffer = nothing;
let used = 0;

function copy(bytes: Buffer): Buffer {
  if (bytes.length > FIRST_ROOM / 4) return Buffer.from(bytes);
  if (used + bytes.length > slab.length) {
    slab = Buffer.allocUnsafeSlow(FIRST_ROOM);
    used = 0;
  }
  const own = slab.subarray(used, used + bytes.length);
  own.set(bytes);
  used += bytes.length;
  return own;
}

/** Bytes one after the other, in one piece of memory. */
function createPile() {
  let room: Buffer = nothing;
  let filled = 0;
  return {
    size: () => filled,
    /** `wanted`: how long it will be in all, as far as anybody says. */
    add(bytes: Buffer, wanted: number): void {
      const needed = filled + bytes.length;
      if (needed > room.length) {
        const grown = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(wanted, Math.max(FIRST_ROOM, 2 * room.length))));
        grown.set(room.subarray(0, filled));
        room = grown;
      }
      room.set(bytes, filled);
      filled = needed;
    },
    bytes: () => room.subarray(0, filled),
    /** All of it, which is forgotten here. */
    take(): Buffer {
      const taken = room.subarray(0, filled);
      room = nothing;
      filled = 0;
      return taken;
    },
  };
}

/**
 * Reads what a client sends over a WebSocket (RFC 6455 §5) from pieces that may be cut anywhere. Their memory is changed,
 * and may be used again once the call has returned. `most`: bytes of a message.
 */
export function createFrameReader(most: number, ears: FrameEars) {
  /** A frame that is not there whole, and how long it is; while its head is not whole, how long that is. */
  const pile = createPile();
  let needed = 0;
  /** A message in several frames. */
  const message = createPile();
  let fragments: number | undefined;
  let over = false;

  function refuse(code: number) {
    over = true;
    message.take();
    pile.take();
    ears.broken(code);
  }

  /** What is wrong with a frame of which only the head is looked at. */
  function judge(first: number, length: number, isMasked: boolean): number | undefined {
    const opcode = first & 0x0f;
    if ((first & RESERVED) !== 0 || !known.has(opcode) || !isMasked) return wrong.protocol;
    if ((opcode & CONTROL) !== 0) {
      return (first & FIN) === 0 || length > SHORT_MAX ? wrong.protocol : undefined;
    }
    if ((opcode === opcodes.continuation) !== (fragments !== undefined)) return wrong.protocol;
    return message.size() + length > most ? wrong.tooLong : undefined;
  }

  /** How long the frame at `at` is, or, when that is not known yet, how much of it says so; 0 when it must not be. */
  function sizeAt(bytes: Buffer, at: number): number {
    const left = bytes.length - at;
    if (left < 2) return 2;
    const short = (bytes[at + 1] as number) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (left < head) return head;
    const length =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    const refused = judge(bytes[at] as number, length, ((bytes[at + 1] as number) & MASKED) !== 0);
    if (refused === undefined) return head + MASK_BYTES + length;
    refuse(refused);
    return 0;
  }

  function hear(opcode: number, isLast: boolean, payload: Buffer) {
    if (opcode === opcodes.ping) return ears.ping(payload);
    if (opcode === opcodes.pong) return ears.pong();
    if (opcode === opcodes.close) return hearClose(payload);
    if (fragments === undefined && isLast) return ears.message(copy(payload), opcode === opcodes.binary);
    fragments ??= opcode;
    message.add(payload, most);
    if (!isLast) return;
    const isBinary = fragments === opcodes.binary;
    fragments = undefined;
    ears.message(message.take(), isBinary);
  }

  function hearClose(payload: Buffer) {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : undefined;
    if (payload.length === 1 || (code !== undefined && !isCode(code))) return refuse(wrong.protocol);
    over = true;
    ears.close(code);
  }

  /** The frame of `size` bytes at `at`, which lies there whole. */
  function take(bytes: Buffer, at: number, size: number): void {
    const first = bytes[at] as number;
    const short = (bytes[at + 1] as number) & 0x7f;
    const from = at + (short < 126 ? 2 : short === 126 ? 4 : 10) + MASK_BYTES;
    const key = bytes.readInt32LE(from - MASK_BYTES);
    if (key !== 0) unmask(bytes, from, at + size, key);
    hear(first & 0x0f, (first & FIN) !== 0, bytes.subarray(from, at + size));
  }

  /** Completes the frame that came first, if there is one; how much of `bytes` that took. */
  function complete(bytes: Buffer): number {
    let at = 0;
    while (pile.size() > 0 && at < bytes.length) {
      const part = bytes.subarray(at, at + needed - pile.size());
      at += part.length;
      pile.add(part, needed);
      if (pile.size() < needed) break;
      needed = sizeAt(pile.bytes(), 0);
      if (over || pile.size() < needed) continue;
      take(pile.take(), 0, needed);
    }
    return at;
  }

  return {
    push(bytes: Buffer): void {
      if (over) return;
      for (let at = pile.size() > 0 ? complete(bytes) : 0; at < bytes.length && !over; ) {
        const size = sizeAt(bytes, at);
        if (over) return;
        if (bytes.length - at >= size) take(bytes, at, size);
        else {
          needed = size;
          pile.add(bytes.subarray(at), size);
        }
        at += size;
      }
    },
  };
}
