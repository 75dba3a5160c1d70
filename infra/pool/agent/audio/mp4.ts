import { MiB } from '../../../../shared/bytes.ts';
import { type ByteQueue, createByteQueue } from './byte-queue.ts';
import { type Demuxer, invalid, type MediaItem, truncated, unsupported } from './demuxer.ts';
import { readMp4Codec } from './mp4-codec.ts';
import { createHeld, createHeldBudget } from './mp4-held.ts';
import { createSampleCursor, damaged, guard } from './mp4-samples.ts';
import { type Mp4Track, readFragment, readMoov, readSamples } from './mp4-tables.ts';

/** Longest index that is read: four hours of AAC at 48 kHz have 2.7 MB of sample sizes. */
const MP4_INDEX_BYTES = 16 * MiB;
interface OpenBox {
  readonly type: string;
  readonly start: number;
  /** Offset behind the box; infinite for the last one of a file that gives no size. */
  readonly end: number;
}

/** Takes a box header of 8 or 16 bytes (§4.2); undefined while it is not there. */
function openBox(queue: ByteQueue): OpenBox | 'broken' | undefined {
  const head = queue.peek(8);
  if (!head) return undefined;
  const start = queue.position();
  const size = new DataView(head.buffer, head.byteOffset, 8).getUint32(0);
  const type = String.fromCharCode(...head.subarray(4));
  if (size === 1) {
    const long = queue.take(16);
    if (!long) return undefined;
    const length = Number(new DataView(long.buffer, long.byteOffset).getBigUint64(8));
    return length < 16 || length > Number.MAX_SAFE_INTEGER ? 'broken' : { type, start, end: start + length };
  }
  queue.take(8);
  if (size !== 0 && size < 8) return 'broken';
  return { type, start, end: size === 0 ? Number.POSITIVE_INFINITY : start + size };
}

/** Memory of all recordings of this process. */
const shared = createHeldBudget();

/**
 * Packets of the first track of sound in an MP4 file (ISO/IEC 14496-12), whole or fragmented. Holds one packet, and out
 * of `budget` its indexes and, where the index comes last, up to `MP4_HELD_BYTES` of sound.
 */
export function createMp4Demuxer(budget = shared): Demuxer {
  const queue = createByteQueue();
  const cursor = createSampleCursor();
  const held = createHeld(budget);
  let box: OpenBox | undefined;
  let track: Mp4Track | undefined;
  /** Bytes of the last index of each type: `track` and `cursor` read it in place. */
  const indexBytes = { moov: 0, moof: 0 };

  function* openMoov(moov: DataView): Generator<MediaItem> {
    if (track) return yield invalid('it has two indexes');
    const found = guard(() => readMoov(moov));
    if (found === 'broken') return yield damaged;
    if (!found) return yield unsupported('MP4 without a track of sound');
    const codec = guard(() => readMp4Codec(found));
    if (codec === 'broken') return yield damaged;
    if ('found' in codec) return yield unsupported(codec.found);
    track = found;
    yield { type: 'track', track: codec };
    const refused = cursor.open(readSamples(track));
    if (refused) return yield refused;
    for (const { body, end } of held.release()) yield* cursor.extract(body, end);
    // Nothing before the index can be read any more.
    if ((cursor.next() ?? queue.position()) < queue.position()) yield invalid('its index points outside its sound');
  }

  function* readIndex({ type, start }: OpenBox, body: Uint8Array): Generator<MediaItem> {
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    if (type === 'moov') return yield* openMoov(view);
    if (!track) return yield invalid('a fragment comes before its index');
    if (cursor.next() !== undefined) return yield invalid('its index points outside its sound');
    const refused = cursor.open(readFragment(view, track, start));
    if (refused) yield refused;
  }

  /** Charges the part of an index that is there, and reads the index when it is whole. */
  function* takeIndex(open: OpenBox, type: keyof typeof indexBytes): Generator<MediaItem> {
    const size = open.end - queue.position();
    if (size > MP4_INDEX_BYTES) return yield invalid('its index is too long');
    const refused = held.chargeIndexes(indexBytes.moov + indexBytes.moof + Math.min(size, queue.length()));
    if (refused) return yield refused;
    const body = queue.take(size);
    if (!body) return;
    indexBytes[type] = size;
    yield* readIndex(open, body);
  }

  /** Continues in the open box as far as bytes are there. */
  function* readBody(open: OpenBox): Generator<MediaItem> {
    if (open.type === 'moov' || open.type === 'moof') yield* takeIndex(open, open.type);
    else if (open.type === 'mdat' && !track) {
      const refused = held.take(queue, open.end);
      if (refused) yield refused;
    } else if (open.type === 'mdat') yield* cursor.extract(queue, open.end);
    else queue.skipTo(open.end);
  }

  return {
    *push(bytes) {
      queue.append(bytes);
      for (;;) {
        const opened: OpenBox | 'broken' | undefined = box ?? openBox(queue);
        if (opened === 'broken') return yield invalid('a box has no valid size');
        if (!opened) return;
        box = opened;
        yield* readBody(opened);
        if (queue.position() < opened.end) return;
        box = undefined;
      }
    },
    free: held.free,
    *finish() {
      if (box && box.end !== Number.POSITIVE_INFINITY) yield truncated(`mp4 ${box.type}`);
      else if (!track) yield held.bytes() > 0 ? truncated('mp4 without an index') : invalid('it has no index');
      else if (cursor.next() !== undefined || queue.length() > 0) yield truncated('mp4 packets');
      else if (cursor.packets() === 0) yield invalid('it has no packets of sound');
    },
  };
}
