import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { createAdtsDemuxer } from '../audio/adts.ts';
import type { Demuxer, MediaItem, Track } from '../audio/demuxer.ts';
import { createMatroskaDemuxer } from '../audio/matroska.ts';
import { itemOf, type OggItem } from './ogg-pages.ts';
import type { Origin } from './source.ts';

export type ContainerItem =
  | OggItem
  /** The track of AAC that follows. */
  | { readonly type: 'aac'; readonly track: Track }
  /** The last item. */
  | { readonly type: 'refused'; readonly refusal: Refusal };

/** Reads a container as its bytes arrive. */
export interface ContainerReader {
  push(bytes: Uint8Array): Generator<ContainerItem>;
  /** Ends the stream. Refuses one that ends inside an element. */
  finish?(): Generator<ContainerItem>;
  /** Number of the track that another reader needs behind the head of the container. */
  track?(): number | undefined;
}

const codecs: Readonly<Record<Track['codec'], string>> = { opus: 'Opus', aac: 'AAC', vorbis: 'Vorbis' };

/** Names the formats of live streams instead of those of recordings. */
export const liveRefusal = (refusal: Refusal): Refusal =>
  refusal.reason === 'audio_unsupported' ? { ...refusal, reason: 'audio_live_unsupported' } : refusal;

function readTrack(track: Track): ContainerItem {
  const { codec, container, config } = track;
  if (codec === 'aac' && container === 'ADTS') return { type: 'aac', track };
  if (codec !== 'opus') {
    const found = `${codecs[codec]} in ${container}`;
    return { type: 'refused', refusal: refuse('audio_live_unsupported', { found }) };
  }
  const head = itemOf(config);
  return head?.type === 'head' ? head : { type: 'broken', rule: 'its Opus header is damaged' };
}

function* readItem(item: MediaItem): Generator<ContainerItem> {
  if (item.type === 'refused') yield { type: 'refused', refusal: liveRefusal(item.refusal) };
  else if (item.type === 'track') yield readTrack(item.track);
  else {
    if (item.at !== undefined) yield { type: 'place', position: item.at };
    yield item;
  }
}

function createReader(demuxer: Demuxer): ContainerReader {
  return {
    *push(bytes) {
      for (const item of demuxer.push(bytes)) yield* readItem(item);
    },
  };
}

/** Reads live WebM with the demuxer of recordings. */
export function createWebmReader(origin: Origin): ContainerReader {
  const demuxer = createMatroskaDemuxer(origin);
  return {
    ...createReader(demuxer),
    track: demuxer.track,
    *finish() {
      for (const item of demuxer.finish()) yield* readItem(item);
    },
  };
}

/** Reads live AAC with the demuxer of recordings; each frame describes itself. */
export const createAdtsReader = ({ position }: Origin): ContainerReader => createReader(createAdtsDemuxer(position));
