import type { ByteQueue } from './byte-queue.ts';
import { invalid, type MediaItem, PACKET_BYTES } from './demuxer.ts';
import type { Sample } from './mp4-tables.ts';

export const damaged = invalid('its index is damaged');

/** Runs a read of the index, which throws a `RangeError` where a box is shorter than its fields. */
export function guard<T>(read: () => T): T | 'broken' {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof RangeError) return 'broken';
    throw cause;
  }
}

/** Takes the samples of an index out of the bytes that they lie in. They must lie in the order of decoding. */
export function createSampleCursor() {
  let samples: Iterator<Sample> | undefined;
  let next: Sample | undefined;
  let packets = 0;

  /** Moves to the next sample. Each takes bytes of the file, so that an index of billions ends with the file. */
  function advance(): MediaItem | undefined {
    const end = next && next.offset + next.size;
    const step = guard(() => samples?.next());
    if (step === 'broken') return damaged;
    next = step?.done ? undefined : step?.value;
    if (!next) return undefined;
    if (next.size === 0) return invalid('a packet has no bytes');
    if (next.size > PACKET_BYTES) return invalid('a packet is too long');
    if (end !== undefined && next.offset < end) return invalid('its packets do not follow each other');
    return undefined;
  }

  return {
    /** Continues with the samples of another index. Returns a refusal of the first one. */
    open(index: Iterator<Sample>): MediaItem | undefined {
      samples = index;
      return advance();
    },
    /** Offset of the next sample; undefined behind the last one. */
    next: () => next?.offset,
    packets: () => packets,
    /** Packets in a box that ends at `end`, as far as they are there. */
    *extract(body: ByteQueue, end: number): Generator<MediaItem> {
      while (next && next.offset < end) {
        if (next.offset < body.position()) return yield invalid('its index points before its sound');
        if (next.offset + next.size > end) return yield invalid('a packet does not fit its box');
        body.skipTo(next.offset);
        if (body.position() < next.offset) return;
        const packet = body.take(next.size);
        if (!packet) return;
        packets++;
        yield { type: 'packet', packet };
        const refused = advance();
        if (refused) return yield refused;
      }
      body.skipTo(end);
    },
  };
}
