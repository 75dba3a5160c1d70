// Opus (RFC 6716) in Ogg (RFC 3533, RFC 7845), mono. The encoder is libopus 1.4 in WebAssembly.
import OpusScript from 'opusscript';
import { oggCrc } from '../audio/ogg.ts';

/** Packet of 20 ms, the length that RFC 6716 §2.1.4 names for most uses. */
const FRAMES_PER_S = 50;
/** Positions in Ogg Opus count at 48 kHz whatever the encoder's input is (RFC 7845 §4). */
const GRANULE_RATE = 48_000;
const GRANULES = GRANULE_RATE / FRAMES_PER_S;
/** Look-ahead of libopus at 48 kHz, which decoders skip (6.5 ms). */
const PRE_SKIP = 312;
/** Wideband speech: RFC 6716 §2.1.1 names 16 to 20 kbit/s, and a voice without noise gets some more. */
const BITS_PER_S = 28_000;
/** Effort of the encoder, 0 to 10: half the CPU of the default without a difference to hear. */
const COMPLEXITY = 5;
const COMPLEXITY_REQUEST = 4010;
/** Packets of one page: a second. A page has at most 255 lacing values. */
const PAGE_PACKETS = FRAMES_PER_S;
/** There is one logical stream, so any serial number is unique. */
const SERIAL = 1;

const FIRST = 2;
const LAST = 4;

interface Page {
  readonly flags: number;
  /** Position behind its last packet. */
  readonly granule: number;
  readonly packets: readonly Uint8Array[];
}

function pageOf({ flags, granule, packets }: Page, sequence: number): Uint8Array {
  const lacing = packets.flatMap(({ length }) => [...Array<number>(Math.floor(length / 255)).fill(255), length % 255]);
  const head = Buffer.alloc(27 + lacing.length);
  head.write('OggS');
  head[5] = flags;
  head.writeBigUInt64LE(BigInt(granule), 6);
  head.writeUInt32LE(SERIAL, 14);
  head.writeUInt32LE(sequence, 18);
  head[26] = lacing.length;
  head.set(lacing, 27);
  const page = Buffer.concat([head, ...packets]);
  page.writeUInt32LE(oggCrc(page), 22);
  return page;
}

function idHeader(sampleRate: number): Uint8Array {
  const header = Buffer.alloc(19);
  header.write('OpusHead');
  header[8] = 1;
  header[9] = 1;
  header.writeUInt16LE(PRE_SKIP, 10);
  header.writeUInt32LE(sampleRate, 12);
  return header;
}

function commentHeader(): Uint8Array {
  const vendor = 'auricle';
  const header = Buffer.alloc(16 + vendor.length);
  header.write('OpusTags');
  header.writeUInt32LE(vendor.length, 8);
  header.write(vendor, 12);
  return header;
}

/** An Ogg Opus stream as it is made. */
export interface OpusStream {
  /** Encodes samples and returns whole pages. Samples that fill no packet wait. */
  push(samples: Int16Array): Uint8Array;
  /** Encodes the rest and returns the last page. */
  finish(): Uint8Array;
  /** Frees the encoder. */
  close(): void;
}

/** Opens a stream of mono sound at `sampleRate`, one of the rates of Opus (8, 12, 16, 24 or 48 kHz). */
export function openOpusStream(sampleRate: 16_000): OpusStream {
  const encoder = new OpusScript(sampleRate, 1, OpusScript.Application.VOIP);
  encoder.setBitrate(BITS_PER_S);
  encoder.encoderCTL(COMPLEXITY_REQUEST, COMPLEXITY);
  const frame = sampleRate / FRAMES_PER_S;
  let waiting = new Int16Array(0);
  let samples = 0;
  let packets = 0;
  let sequence = 0;
  const page = (flags: number, granule: number, body: readonly Uint8Array[]) =>
    pageOf({ flags, granule, packets: body }, sequence++);

  function encode(at: number): Uint8Array {
    packets += 1;
    return encoder.encode(Buffer.from(waiting.buffer, waiting.byteOffset + 2 * at, 2 * frame), frame);
  }

  function append(more: Int16Array): void {
    const joined = new Int16Array(waiting.length + more.length);
    joined.set(waiting);
    joined.set(more, waiting.length);
    waiting = joined;
  }

  /** Encodes all whole packets but the last `keep`. */
  function takePages(keep: number): Uint8Array[] {
    const pages: Uint8Array[] = [];
    const whole = Math.max(0, Math.floor(waiting.length / frame) - keep);
    for (let at = 0; at < whole; at += PAGE_PACKETS) {
      const count = Math.min(PAGE_PACKETS, whole - at);
      const body = Array.from({ length: count }, (_, one) => encode((at + one) * frame));
      pages.push(page(0, packets * GRANULES, body));
    }
    waiting = waiting.slice(whole * frame);
    return pages;
  }

  const headers = [page(FIRST, 0, [idHeader(sampleRate)]), page(0, 0, [commentHeader()])];
  return {
    push(more) {
      samples += more.length;
      append(more);
      return Buffer.concat([...headers.splice(0), ...takePages(0)]);
    },
    finish() {
      // The look-ahead comes out behind the last sample; the position of the last page trims what is too much.
      const end = PRE_SKIP + Math.round((samples * GRANULE_RATE) / sampleRate);
      append(new Int16Array(Math.ceil(end / GRANULES) * frame - packets * frame - waiting.length));
      const pages = takePages(1);
      return Buffer.concat([...headers.splice(0), ...pages, page(LAST, end, [encode(0)])]);
    },
    close: () => encoder.delete(),
  };
}
