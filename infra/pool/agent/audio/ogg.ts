import { MiB } from '../../../../shared/bytes.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

/**
 * Longest packet of an Ogg recording that is kept: 65,535 stereo samples of 32 bits take over half of it;
 * longer ones are tags.
 */
const OGG_PACKET_BYTES = MiB;

const HEADER_BYTES = 27;
const FIRST_PAGE = 2;
const LAST_PAGE = 4;
const SERIAL_AT = 14;
const SEQUENCE_AT = 18;
/** Offset of a page's checksum, which counts as zeros in it. */
const CHECKSUM_AT = 22;

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  return crc >>> 0;
});

/** RFC 3533 §6: the generator polynomial of Ethernet, neither reflected nor inverted. */
export function oggCrc(bytes: Uint8Array, before = 0): number {
  let crc = before;
  for (const byte of bytes) crc = ((crc << 8) ^ (crcTable[(crc >>> 24) ^ byte] ?? 0)) >>> 0;
  return crc;
}

/**
 * Returns a check that gives the rule a page header breaks: sequence numbers of a logical stream rise by one
 * (RFC 3533 §6). A stream may begin at any number, and a first page begins another stream.
 */
export function createPageOrder(): (header: Uint8Array) => string | undefined {
  let serial = 0;
  let next: number | undefined;
  return (header) => {
    const view = new DataView(header.buffer, header.byteOffset);
    const sequence = view.getUint32(SEQUENCE_AT, true);
    const stream = view.getUint32(SERIAL_AT, true);
    const expected = view.getUint8(5) & FIRST_PAGE ? undefined : next;
    if (expected !== undefined && stream !== serial) return 'it mixes pages of two streams';
    if (expected !== undefined && sequence > expected) return `page ${expected} is missing`;
    if (expected !== undefined && sequence < expected) return `page ${sequence} is repeated or out of order`;
    serial = stream;
    next = (sequence + 1) >>> 0;
    return undefined;
  };
}

export interface OggGuard {
  push(bytes: Uint8Array): Result<undefined>;
  /** Refuses a file that stops inside a page or before the page that ends the stream (RFC 3533 §6). */
  finish(): Result<undefined>;
}

const damaged = (rule: string): Result<never, Refusal> => no(refuse('audio_invalid', { rule }));

/**
 * Walks the pages of an Ogg file (RFC 3533 §6) ahead of its decoder: pages must be complete, in sequence, match their
 * checksums and belong to one logical stream. So the decoder never skips sound, and a second stream cannot bring
 * other channels.
 * `onPacket` gets each packet (RFC 3533 §5) of at most `OGG_PACKET_BYTES`; longer ones are covers and other tags.
 */
export function createOggGuard(onPacket?: (packet: Uint8Array) => void): OggGuard {
  const header = new Uint8Array(HEADER_BYTES + 255);
  let filled = 0;
  /** Bytes of page body still to come. */
  let body = 0;
  let pages = 0;
  let isLast = false;
  /** The checksum of the page so far, and the one in its header. */
  let crc = 0;
  let announced = 0;
  const findGap = createPageOrder();
  const packets = onPacket && createPackets(onPacket);

  /** Header length once it is known, lacing table included. */
  const needed = () => (filled < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + (header[26] ?? 0));

  function readPage(): Result<undefined> {
    if (String.fromCharCode(...header.subarray(0, 4)) !== 'OggS') return damaged('its pages do not follow each other');
    const first = ((header[5] ?? 0) & FIRST_PAGE) !== 0;
    if (first !== (pages === 0)) return damaged('it holds more than one stream');
    isLast = ((header[5] ?? 0) & LAST_PAGE) !== 0;
    const gap = findGap(header);
    if (gap !== undefined) return damaged(gap);
    announced = new DataView(header.buffer).getUint32(CHECKSUM_AT, true);
    header.fill(0, CHECKSUM_AT, CHECKSUM_AT + 4);
    crc = oggCrc(header.subarray(0, filled));
    const lacing = header.slice(HEADER_BYTES, filled);
    body = lacing.reduce((sum, size) => sum + size, 0);
    packets?.page(lacing);
    pages++;
    filled = 0;
    return checkPage();
  }

  const checkPage = () => (body > 0 || crc === announced ? ok(undefined) : damaged('a page is damaged'));

  return {
    push(bytes) {
      let at = 0;
      while (at < bytes.length) {
        if (body > 0) {
          const part = bytes.subarray(at, at + body);
          packets?.body(part);
          crc = oggCrc(part, crc);
          body -= part.length;
          at += part.length;
          const page = checkPage();
          if (!page.ok) return page;
          continue;
        }
        const part = bytes.subarray(at, at + needed() - filled);
        header.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled < HEADER_BYTES || filled < needed()) continue;
        const page = readPage();
        if (!page.ok) return page;
      }
      return ok(undefined);
    },
    finish() {
      if (filled > 0 || body > 0) return no(refuse('audio_truncated', undefined, 'ogg page'));
      return isLast || pages === 0 ? ok(undefined) : no(refuse('audio_truncated', undefined, 'ogg without an end'));
    },
  };
}

/** Puts packets together: pieces of 255 bytes go on, a shorter one – of 0 bytes, too – ends its packet. */
function createPackets(onPacket: (packet: Uint8Array) => void) {
  /** Sizes of the pieces that are not complete yet; `left` bytes of the first one are still to come. */
  let lacing = new Uint8Array(0);
  let piece = 0;
  let left = 0;
  let parts: Uint8Array[] = [];
  let bytes = 0;

  /** Ends every piece that needs no more bytes. */
  function settle() {
    while (left === 0 && piece < lacing.length) {
      if ((lacing[piece] ?? 0) < 255) {
        if (bytes <= OGG_PACKET_BYTES) onPacket(Buffer.concat(parts));
        parts = [];
        bytes = 0;
      }
      piece++;
      left = lacing[piece] ?? 0;
    }
  }

  return {
    page(table: Uint8Array<ArrayBuffer>) {
      lacing = table;
      piece = 0;
      left = table[0] ?? 0;
      settle();
    },
    body(input: Uint8Array) {
      for (let at = 0; at < input.length; ) {
        const part = input.slice(at, at + left);
        bytes += part.length;
        if (bytes <= OGG_PACKET_BYTES) parts.push(part);
        else parts = [];
        at += part.length;
        left -= part.length;
        settle();
      }
    },
  };
}
