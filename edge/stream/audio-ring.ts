import { KiB, MiB } from '../../shared/bytes.ts';
import type { LinkControl } from '../../shared/stream/link.ts';

/** Unacknowledged audio of one session: ten minutes of 24 kHz 16-bit sound sent at once are 27.5 MiB. */
export const STREAM_RING_BYTES = 32 * MiB;
/** Memory of a buffered message without its audio: an object of six fields and its place in a list. */
export const STREAM_NOTE_BYTES = 128;
/** Messages of unacknowledged audio: eleven minutes of 10 ms packets; single bytes cannot fill a ring. */
export const STREAM_RING_ITEMS_MAX = 65_536;
/**
 * Requests and options beyond STREAM_RING_ITEMS_MAX: those of a full ring are not lost. Twice
 * STREAM_REQUESTS_MAX.
 */
export const STREAM_RING_MARKS_MAX = 512;
/**
 * Slab of the replay buffer: half a second of 16 kHz sound. A message lies in one slab, so at worst half of
 * each is empty.
 */
export const STREAM_SLAB_BYTES = 16 * KiB;
/** Empty slabs that an isolate keeps, 4 MiB: the ends of forty utterances, so that the next ones allocate none. */
export const STREAM_SPARE_SLABS = 256;
/** Pooled note objects: more than the messages in an utterance of usual length. */
const STREAM_SPARE_NOTES = 128;

/** A control message with a position between two samples. */
export type Mark = Extract<LinkControl, { type: 'finalize' | 'clear' | 'options' }>;

export type RingItem =
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array; readonly seconds: number }
  | { readonly kind: 'mark'; readonly position: number; readonly mark: Mark };

/** Location of one buffered message. */
interface Entry {
  readonly kind: 'audio';
  position: number;
  slab: Slab;
  offset: number;
  length: number;
  seconds: number;
}
type Item = Entry | Extract<RingItem, { kind: 'mark' }>;

/** A block of memory that is filled from its start. `used` counts the buffered messages in it. */
interface Slab {
  readonly bytes: Uint8Array;
  filled: number;
  used: number;
}

export interface RingBounds {
  readonly bytes: number;
  readonly items: number;
  /** Marks accepted beyond `items`. */
  readonly marks: number;
}

const defaultBounds = (): RingBounds => ({
  bytes: STREAM_RING_BYTES,
  items: STREAM_RING_ITEMS_MAX,
  marks: STREAM_RING_MARKS_MAX,
});

/**
 * A bounded FIFO of audio messages, with marks between them. Items have consecutive numbers, so a reader can stop, go
 * on and go back.
 *
 * Audio stays for seconds, which is expensive for a generational collector. The ring therefore copies it into slabs and
 * reuses slabs and entries. A slab that leaves a ring is filled with zeros before another ring gets it.
 */
export class AudioRing {
  readonly #bounds: RingBounds;
  #items: Item[] = [];
  /** Number of the first buffered item, and count of removed items at the start of `#items`. */
  #first = 0;
  #removed = 0;
  #start: number;
  #end: number;
  /** Slab of the next message. */
  #slab: Slab | undefined;
  #slabBytes = 0;
  readonly #spareEntries: Entry[] = [];

  constructor(position: number, bounds: RingBounds = defaultBounds()) {
    this.#start = position;
    this.#end = position;
    this.#bounds = bounds;
  }

  /** Position of the first buffered byte. */
  get start(): number {
    return this.#start;
  }

  /** Position of the next byte to append. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.#end - this.#start;
  }

  /** Bytes of memory: slabs and entries. */
  get memory(): number {
    return this.#slabBytes + (this.next - this.#first) * STREAM_NOTE_BYTES;
  }

  /** Number of the first item. */
  get first(): number {
    return this.#first;
  }

  /** Number of the next item to append. */
  get next(): number {
    return this.#first + this.#items.length - this.#removed;
  }

  hasRoom(bytes: number, items = 1): boolean {
    return this.bytes + bytes <= this.#bounds.bytes && this.next - this.#first + items <= this.#bounds.items;
  }

  /** Copies one message, or returns false when it does not fit. */
  push(audio: Uint8Array, seconds: number): boolean {
    const { length } = audio;
    if (!this.hasRoom(length)) return false;
    const slab = this.#slabFor(length);
    const offset = slab.filled;
    slab.bytes.set(audio, offset);
    slab.filled += length;
    slab.used += 1;
    const entry = this.#newEntry(slab, offset);
    entry.position = this.#end;
    entry.length = length;
    entry.seconds = seconds;
    this.#items.push(entry);
    this.#end += length;
    return true;
  }

  /** Returns a slab with room for a message. A message over half a slab gets one of its own length: two do not fit. */
  #slabFor(length: number): Slab {
    const size = STREAM_SLAB_BYTES;
    if (length > size / 2) return this.#newSlab(length);
    if (!this.#slab || this.#slab.filled + length > size) {
      if (this.#slab?.used === 0) this.#slab.filled = 0;
      else this.#slab = this.#newSlab(size);
    }
    return this.#slab as Slab;
  }

  #newSlab(size: number): Slab {
    this.#slabBytes += size;
    const spare = size === STREAM_SLAB_BYTES ? spareSlabs.pop() : undefined;
    return spare ?? { bytes: new Uint8Array(size), filled: 0, used: 0 };
  }

  #newEntry(slab: Slab, offset: number): Entry {
    const entry = this.#spareEntries.pop();
    if (!entry) return { kind: 'audio', position: 0, slab, offset, length: 0, seconds: 0 };
    entry.slab = slab;
    entry.offset = offset;
    return entry;
  }

  #free(entry: Entry): void {
    const { slab } = entry;
    slab.used -= 1;
    entry.slab = noSlab;
    if (this.#spareEntries.length < STREAM_SPARE_NOTES) this.#spareEntries.push(entry);
    if (slab.used > 0 || slab === this.#slab) return;
    this.#slabBytes -= slab.bytes.length;
    if (slab.bytes.length !== STREAM_SLAB_BYTES || spareSlabs.length >= STREAM_SPARE_SLABS) return;
    slab.bytes.fill(0);
    slab.filled = 0;
    spareSlabs.push(slab);
  }

  /** Appends a mark at the current end, or returns false when there is no room. */
  mark(mark: Mark): boolean {
    if (this.next - this.#first >= this.#bounds.items + this.#bounds.marks) return false;
    this.#items.push({ kind: 'mark', position: this.#end, mark });
    return true;
  }

  /**
   * Returns the item with a number, or undefined outside the ring. The first message may be cut at the start of the
   * ring. Its audio is a view that is valid until `trim` passes it.
   */
  at(number: number): RingItem | undefined {
    if (number < this.#first) return undefined;
    const item = this.#items[number - this.#first + this.#removed];
    if (item?.kind !== 'audio') return item;
    const { slab, offset, length, seconds } = item;
    const cut = Math.max(0, this.#start - item.position);
    const audio = slab.bytes.subarray(offset + cut, offset + length);
    return { kind: 'audio', position: item.position + cut, audio, seconds: (seconds * (length - cut)) / length };
  }

  /** Returns the length of the audio message with a number, 0 for a mark or outside the ring. */
  lengthAt(number: number): number {
    const item = this.#items[number - this.#first + this.#removed];
    return item?.kind === 'audio' ? item.length : 0;
  }

  /**
   * Removes the audio before `position`, and those marks before it for which `isDone` is true: a mark that was sent may
   * still wait for its answer. Throws when `position` is outside the ring.
   */
  trim(position: number, isDone: (mark: Mark, number: number) => boolean): void {
    if (position < this.#start || position > this.#end) throw new RangeError('position outside the ring');
    this.#start = position;
    const waiting: Item[] = [];
    let at = this.#removed;
    for (; at < this.#items.length; at++) {
      const item = this.#items[at] as Item;
      if (item.position > position) break;
      if (item.kind === 'audio') {
        if (item.position + item.length > position) break;
        this.#free(item);
      } else if (!isDone(item.mark, this.#first + at - this.#removed)) waiting.push(item);
    }
    // Waiting marks keep their order and take the numbers before the first item that stays.
    at -= waiting.length;
    for (const [index, item] of waiting.entries()) this.#items[at + index] = item;
    this.#first += at - this.#removed;
    this.#removed = at;
    this.#compact();
  }

  /** Drops removed items once they are half of the list, so that the cost per message is constant. */
  #compact(): void {
    this.#items.fill(removedItem, 0, Math.min(this.#removed, this.#items.length));
    if (this.#removed * 2 < this.#items.length || this.#removed < 64) return;
    this.#items = this.#items.slice(this.#removed);
    this.#removed = 0;
  }
}

/** Empty slabs of this isolate, all zeros. */
const spareSlabs: Slab[] = [];

/** Placeholder that lets spare entries hold no memory. */
const noSlab: Slab = { bytes: new Uint8Array(0), filled: 0, used: 0 };
const removedItem: Item = { kind: 'mark', position: 0, mark: { type: 'clear', id: 0, position: 0 } };
