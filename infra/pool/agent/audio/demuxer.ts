import { type Refusal, refuse } from '../../../../shared/refusal.ts';

/** Longest packet of sound: 120 ms of 8 channels of Opus take under 11 KB, an AAC frame 6 KB. */
export const PACKET_BYTES = 64 * 1024;

/** The one audio track that is decoded. */
export interface Track {
  readonly codec: 'opus' | 'aac' | 'vorbis';
  /** Container, for refusals. */
  readonly container: string;
  /** Header of the codec: OpusHead (RFC 7845 §5.1), AudioSpecificConfig, or the private data of Vorbis. */
  readonly config: Uint8Array;
  /** Seconds before the recording begins: the delay of its encoder, as the container gives it. */
  readonly skipSeconds: number;
}

export type MediaItem =
  /** The first item of a file. */
  | { readonly type: 'track'; readonly track: Track }
  | {
      readonly type: 'packet';
      readonly packet: Uint8Array;
      /** Offset from which another demuxer of the track yields this packet, maybe after others of its block. */
      readonly at?: number;
    }
  /** The last item. */
  | { readonly type: 'refused'; readonly refusal: Refusal };

/** Finds the packets of one track in a container as its bytes arrive. */
export interface Demuxer {
  push(bytes: Uint8Array): Generator<MediaItem>;
  /** Ends the file. Refuses one that ends before its sound does. */
  finish(): Generator<MediaItem>;
  /** Gives memory back that recordings share. */
  free?(): void;
}

export const invalid = (rule: string): MediaItem => ({ type: 'refused', refusal: refuse('audio_invalid', { rule }) });
export const unsupported = (found: string): MediaItem => ({
  type: 'refused',
  refusal: refuse('audio_unsupported', { found }),
});
export const truncated = (detail: string): MediaItem => ({
  type: 'refused',
  refusal: refuse('audio_truncated', undefined, detail),
});
