// Check at the receiving end of the streams: each byte comes once, in order, and unchanged.
import { FRAME_BYTES } from './traffic.ts';

export interface Counts {
  readonly streams: number;
  readonly frames: number;
  readonly bytes: number;
  /** Chunks that were not the next one of their stream, or not what had been sent in that place. */
  readonly wrong: number;
  /** Streams opened again from a checkpoint; without faults there should be none. */
  readonly moved: number;
}

export function createLedger() {
  const counts = { streams: 0, frames: 0, bytes: 0, wrong: 0, moved: 0 };
  return {
    counts: (): Counts => ({ ...counts }),
    reset: () => void Object.assign(counts, { streams: 0, frames: 0, bytes: 0, wrong: 0, moved: 0 }),
    moved() {
      counts.moved += 1;
    },
    /** Opens the check of one stream; `hear` returns the number of frames so far. */
    open() {
      counts.streams += 1;
      let next = 0;
      let stream: number | undefined;
      return {
        hear(position: number, audio: Buffer): number {
          const frame = next / FRAME_BYTES;
          const own = audio.readUInt32BE(0);
          stream ??= own;
          const right =
            position === next && audio.length === FRAME_BYTES && own === stream && audio.readUInt32BE(4) === frame;
          if (!right) counts.wrong += 1;
          counts.frames += 1;
          counts.bytes += audio.length;
          next = position + audio.length;
          return next / FRAME_BYTES;
        },
        bytes: () => next,
        /** Number of the stream, once a frame has arrived. */
        stream: () => stream ?? 0,
      };
    },
  };
}
