import { KiB, MiB } from '../../../../shared/bytes.ts';
import { type ByteQueue, createByteQueue } from './byte-queue.ts';
import { type Demuxer, invalid, type MediaItem, PACKET_BYTES, truncated, unsupported } from './demuxer.ts';
import { elementsIn, readId, readVint } from './ebml.ts';
import { framesOf, readTracks } from './matroska-tracks.ts';

/** Longest description of the tracks; a Vorbis setup takes a few KiB. */
const TRACKS_BYTES = MiB;
/** Longest head of the file: it names a type and versions. */
const HEAD_BYTES = 4 * KiB;
/** Longest block: a dozen packets that share one. */
const BLOCK_BYTES = 4 * PACKET_BYTES;
/** Longest element of a live stream, segments and clusters apart: a video frame takes less. */
const LIVE_ELEMENT_BYTES = 4 * MiB;
/** An id of 4 bytes and a size of 8. */
const ELEMENT_HEAD_BYTES = 12;

const HEAD = 0x1a45dfa3;
const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;
const BLOCK_GROUP = 0xa0;
const TRACKS = 0x1654ae6b;
const SIMPLE_BLOCK = 0xa3;
const BLOCK = 0xa1;
const DOC_TYPE = 0x4282;

/** Elements whose children are read one by one, as if they lay beside them. So no file nests without end. */
const parents: ReadonlySet<number> = new Set([SEGMENT, CLUSTER, BLOCK_GROUP]);
const blocks: ReadonlySet<number> = new Set([SIMPLE_BLOCK, BLOCK]);
/** Elements that are read whole, and their longest size. */
const wholes: Readonly<Record<number, number>> = { [HEAD]: HEAD_BYTES, [TRACKS]: TRACKS_BYTES };

interface Open {
  readonly id: number;
  /** Offset of its head. */
  readonly at: number;
  /** Offset of its body. */
  readonly start: number;
  readonly size: number;
}

/** Takes the head of an element; undefined while it is not there. Parents have the size 0. */
function takeHead(queue: ByteQueue): (Open & { readonly segment?: number }) | 'broken' | undefined {
  const head = queue.peek(Math.min(queue.length(), ELEMENT_HEAD_BYTES)) ?? new Uint8Array(0);
  const id = readId(head);
  if (id === undefined || id === 'broken') return id;
  const size = readVint(head, id.bytes);
  if (size === undefined || size === 'broken') return size;
  const isParent = parents.has(id.id);
  if (size.isUnknown && !isParent) return 'broken';
  const at = queue.position();
  queue.take(id.bytes + size.bytes);
  const start = queue.position();
  if (id.id === SEGMENT && !size.isUnknown) return { id: id.id, at, start, size: 0, segment: start + size.value };
  return { id: id.id, at, start, size: isParent ? 0 : size.value };
}

const nameOf = ({ id }: Open): string => `element 0x${id.toString(16)}`;

/** Start of a live stream: its first byte, or the head of an element that another demuxer reached. */
export interface MatroskaPlace {
  readonly position: number;
  /** Number of the track, where its description lies before `position`. */
  readonly track?: number | undefined;
}

/**
 * Packets of the first track of sound in a WebM or Matroska file (RFC 9559), or in a live stream from `live` on. Holds
 * one element. A recorder that writes live knows no sizes of segments and clusters; a file without them ends anywhere
 * between two elements, and so does a live stream.
 */
export function createMatroskaDemuxer(live?: MatroskaPlace): Demuxer & { readonly track: () => number | undefined } {
  const queue = createByteQueue(live?.position);
  let open: Exclude<ReturnType<typeof takeHead>, 'broken'>;
  let container = 'Matroska';
  let track = live?.track;
  /** Unknown where a live stream continues behind its description. */
  let declared: ReadonlySet<number> | undefined;
  let segmentEnd = 0;
  let packets = 0;

  function* readWhole(id: number, body: Uint8Array): Generator<MediaItem> {
    if (id === HEAD) {
      const type = elementsIn(body).find((element) => element.id === DOC_TYPE)?.body;
      container = type && String.fromCharCode(...type) === 'webm' ? 'WebM' : 'Matroska';
      return;
    }
    if (track !== undefined) return yield invalid('it describes its tracks twice');
    const read = readTracks(body, container);
    if ('found' in read) return yield unsupported(read.found);
    track = read.number;
    declared = read.declared;
    yield { type: 'track', track: read.track };
  }

  /** Frames of a block of the track; undefined while it is not there. */
  function* readBlock({ size, at }: Open): Generator<MediaItem, boolean> {
    if (track === undefined) {
      yield invalid('its sound comes before its tracks');
      return false;
    }
    const head = queue.peek(Math.min(size, queue.length(), 8)) ?? new Uint8Array(0);
    const number = readVint(head);
    if (number === undefined && head.length < Math.min(size, 8)) return false;
    if (number === undefined || number === 'broken') {
      yield invalid('a block is damaged');
      return false;
    }
    if (declared && !declared.has(number.value)) {
      yield invalid(`it has a block of track ${number.value}, which is not declared`);
      return false;
    }
    if (number.value !== track) return true;
    if (size > BLOCK_BYTES) {
      yield invalid('a packet is too long');
      return false;
    }
    const block = queue.take(size);
    if (!block) return false;
    const frames = framesOf(block.subarray(number.bytes));
    if (!frames || frames.some(({ length }) => length === 0 || length > PACKET_BYTES)) {
      yield invalid('a block is damaged');
      return false;
    }
    packets += frames.length;
    for (const packet of frames) yield { type: 'packet', packet, at };
    return true;
  }

  return {
    track: () => track,
    *push(bytes) {
      queue.append(bytes);
      for (;;) {
        const element: ReturnType<typeof takeHead> = open ?? takeHead(queue);
        if (element === 'broken') return yield invalid('an element has no valid size');
        if (!element) return;
        open = element;
        if (live && element.size > LIVE_ELEMENT_BYTES) {
          return yield invalid(`${nameOf(element)} claims ${element.size} bytes`);
        }
        segmentEnd = element.segment ?? segmentEnd;
        const { id, size, start } = element;
        const most = wholes[id];
        if (most !== undefined) {
          if (size > most) return yield invalid('its description is too long');
          const body = queue.take(size);
          if (!body) return;
          yield* readWhole(id, body);
        } else if (blocks.has(id) && queue.position() === start && !(yield* readBlock(element))) return;
        queue.skipTo(start + size);
        if (queue.position() < start + size) return;
        open = undefined;
      }
    },
    *finish() {
      const isCut = open || queue.length() > 0 || (!live && queue.position() < segmentEnd);
      if (isCut) yield truncated(`matroska ${open ? nameOf(open) : 'element'}`);
      else if (packets === 0 && !live) yield invalid('it has no packets of sound');
    },
  };
}
