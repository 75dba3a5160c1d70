import { MiB } from '../../../../shared/bytes.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { type ByteQueue, createByteQueue } from './byte-queue.ts';
import { invalid, type MediaItem } from './demuxer.ts';

/**
 * Sound held until an index behind it arrives: over two hours as phones record. A longer recording is written with its
 * index in front.
 */
export const MP4_HELD_BYTES = 64 * MiB;
/** Boxes of such sound: recorders write one. */
const MP4_HELD_BOXES = 64;
/** Indexes and sound that all recordings of a process hold together: the longest sound of four requests out of 64. */
const MP4_HELD_TOTAL_BYTES = 4 * MP4_HELD_BYTES;

/** Memory that recordings share. */
export function createHeldBudget(most: number = MP4_HELD_TOTAL_BYTES) {
  let used = 0;
  return {
    /** Returns false, and takes nothing, where bytes are missing. A negative number gives bytes back. */
    take(bytes: number): boolean {
      if (used + bytes > most) return false;
      used += bytes;
      return true;
    },
    give(bytes: number): void {
      used -= bytes;
    },
  };
}

export type HeldBudget = ReturnType<typeof createHeldBudget>;

const busy = (detail: string): MediaItem => ({ type: 'refused', refusal: refuse('pool_busy', undefined, detail) });

/** Holds the sound of a file whose index comes last, and counts the memory of its indexes. */
export function createHeld(budget: HeldBudget) {
  const boxes: { readonly body: ByteQueue; readonly end: number }[] = [];
  let held = 0;
  let indexes = 0;
  return {
    /** Sets the bytes that indexes take. Refuses with `pool_busy` where other recordings leave no memory. */
    chargeIndexes(bytes: number): MediaItem | undefined {
      if (!budget.take(bytes - indexes)) return busy('mp4 index');
      indexes = bytes;
      return undefined;
    },
    bytes: () => held,
    /** Takes what is there of a box that ends at `end`. Refuses with `pool_busy` as `chargeIndexes` does. */
    take(queue: ByteQueue, end: number): MediaItem | undefined {
      let last = boxes.at(-1);
      if (last?.end !== end) {
        last = { body: createByteQueue(queue.position()), end };
        boxes.push(last);
      }
      if (boxes.length > MP4_HELD_BOXES) return invalid('its sound is in too many boxes');
      const size = Math.min(queue.length(), end - queue.position());
      if (held + size > MP4_HELD_BYTES) {
        return invalid(
          `its index comes after more than ${MP4_HELD_BYTES / MiB} MiB; write the index first (faststart)`,
        );
      }
      if (!budget.take(size)) return busy('mp4 without an index');
      held += size;
      last.body.append(queue.take(size) ?? new Uint8Array(0));
      return undefined;
    },
    release: () => boxes.splice(0),
    /** Gives the memory back. */
    free(): void {
      budget.give(held + indexes);
      held = 0;
      indexes = 0;
      boxes.length = 0;
    },
  };
}
