import { KiB } from '../../../../shared/bytes.ts';
import { createPageOrder, oggCrc } from '../audio/ogg.ts';

/** Longest packet of live Ogg that is kept: an Opus packet has at most a few KiB, longer ones are tags. */
const STREAM_PACKET_BYTES = 64 * KiB;

const HEADER_BYTES = 27;
/** Offset of a page's checksum, which counts as zeros in it. */
const CHECKSUM = 22;
const CONTINUED = 1;
const FIRST = 2;

export type OggItem =
  /** A place from which another reader gives what follows: of Ogg, a page without the rest of a packet. */
  | { readonly type: 'place'; readonly position: number }
  | { readonly type: 'head'; readonly channels: number; readonly preSkip: number }
  | { readonly type: 'packet'; readonly packet: Uint8Array }
  /** The last item. */
  | { readonly type: 'broken'; readonly rule: string };

const startsWith = (bytes: Uint8Array, text: string) =>
  bytes.length >= text.length && [...text].every((letter, i) => bytes[i] === letter.charCodeAt(0));

/** Returns the item of a packet; nothing for tags. */
export function itemOf(packet: Uint8Array): OggItem | undefined {
  if (startsWith(packet, 'OpusTags')) return undefined;
  if (!startsWith(packet, 'OpusHead')) return { type: 'packet', packet };
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  if (packet.length < 19) return { type: 'broken', rule: 'its header is too short' };
  return { type: 'head', channels: view.getUint8(9), preSkip: view.getUint16(10, true) };
}

/**
 * Returns the rule that a page header breaks. A reader may begin in the middle of a stream, but the first page has an
 * Opus header.
 */
function findBrokenRule(header: Uint8Array): string | undefined {
  if (!startsWith(header, 'OggS') || header[4] !== 0) return 'its pages do not follow each other';
  const view = new DataView(header.buffer, header.byteOffset);
  const isFirst = ((header[5] ?? 0) & FIRST) !== 0;
  return isFirst || view.getUint32(18, true) > 0 ? undefined : 'it does not begin with an Opus header';
}

/**
 * Reads the pages of a live Ogg stream (RFC 3533 §6) that may begin at any page, `start` bytes into the session. Another
 * logical stream may follow, since a recorder that is started again begins one. Holds one packet and one page header.
 */
export function createPageReader(start: number) {
  let position = start;
  const header = new Uint8Array(HEADER_BYTES + 255);
  let filled = 0;
  /** Sizes of the pieces of the page that are not read yet; `left` bytes of the first one are still to come. */
  let lacing: number[] = [];
  let left = 0;
  let packet: Uint8Array[] = [];
  let packetBytes = 0;
  /** The packet began before the reader did. */
  let ignoring = false;
  /** The checksum of the page so far, and as it should be. */
  let crc = 0;
  let announced = 0;
  /** The next packet is the first one of its stream. */
  let begins = false;
  const findGap = createPageOrder();

  const needed = () => (filled < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + (header[26] ?? 0));

  function* settle(): Generator<OggItem> {
    while (lacing.length > 0 && left === 0) {
      const size = lacing.shift() ?? 0;
      left = lacing[0] ?? 0;
      if (size === 255) continue;
      const whole = Buffer.concat(packet);
      packet = [];
      const keep = !ignoring && packetBytes <= STREAM_PACKET_BYTES;
      packetBytes = 0;
      ignoring = false;
      const item = keep ? itemOf(whole) : undefined;
      if (begins && item?.type !== 'head' && item?.type !== 'broken') {
        yield { type: 'broken', rule: 'it does not begin with an Opus header' };
        return;
      }
      begins = false;
      if (item) yield item;
    }
    if (lacing.length === 0 && crc !== announced) yield { type: 'broken', rule: 'a page is damaged' };
  }

  function* openPage(at: number): Generator<OggItem> {
    const rule = findBrokenRule(header) ?? findGap(header);
    if (rule !== undefined) {
      yield { type: 'broken', rule };
      return;
    }
    announced = new DataView(header.buffer).getUint32(CHECKSUM, true);
    header.fill(0, CHECKSUM, CHECKSUM + 4);
    crc = oggCrc(header.subarray(0, filled));
    begins = ((header[5] ?? 0) & FIRST) !== 0;
    const continued = ((header[5] ?? 0) & CONTINUED) !== 0;
    if (!continued) {
      yield { type: 'place', position: at };
      packet = [];
      packetBytes = 0;
      ignoring = false;
    } else if (packetBytes === 0) ignoring = true;
    lacing = [...header.subarray(HEADER_BYTES, filled)];
    left = lacing[0] ?? 0;
    filled = 0;
    yield* settle();
  }

  return {
    *push(bytes: Uint8Array): Generator<OggItem> {
      for (let at = 0; at < bytes.length; ) {
        if (left > 0) {
          const part = bytes.slice(at, at + left);
          crc = oggCrc(part, crc);
          packetBytes += part.length;
          if (packetBytes <= STREAM_PACKET_BYTES) packet.push(part);
          else packet = [];
          left -= part.length;
          at += part.length;
          position += part.length;
          yield* settle();
          continue;
        }
        const part = bytes.subarray(at, at + needed() - filled);
        header.set(part, filled);
        filled += part.length;
        at += part.length;
        position += part.length;
        if (filled >= HEADER_BYTES && filled >= needed()) yield* openPage(position - filled);
      }
    },
  };
}
