import { limits } from '../limits.ts';
import type { LinkControl } from './link.ts';

/** A control that has its place between two samples. */
export type Mark = Extract<LinkControl, { type: 'finalize' | 'clear' | 'options' }>;

export type RingItem =
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array; readonly seconds: number }
  | { readonly kind: 'mark'; readonly position: number; readonly mark: Mark };

/** A message of audio as it is kept: where in which piece of memory. */
interface Kept {
  readonly kind: 'audio';
  position: number;
  slab: Slab;
  at: number;
  length: number;
  seconds: number;
}
type Item = Kept | Extract<RingItem, { kind: 'mark' }>;

/** A piece of memory, filled from its beginning, and how many messages lie in it that are not settled. */
interface Slab {
  readonly bytes: Uint8Array;
  filled: number;
  kept: number;
}

/**
 * Audio that no agent has settled, as the client sent it: one item for each message, and between them what else has to
 * happen at a position. Items have numbers that grow by one, so that a reader can stop anywhere and go on, or go back.
 *
 * Audio lives for seconds, which is longer than a collector likes, and left to it would be most of what it has to do: so
 * it lies in memory of the ring's own, which is used again, and so do the notes about it. Never in that of another ring.
 */
export class Ring {
  readonly #bytes: number;
  readonly #most: number;
  readonly #marks: number;
  #items: Item[] = [];
  /** Number of the first item that is kept, and how many of `#items` are gone before it. */
  #first = 0;
  #gone = 0;
  #start: number;
  #end: number;
  /** Where the next message goes, and what is free. */
  #slab: Slab | undefined;
  readonly #slabs: Slab[] = [];
  #slabBytes = 0;
  readonly #notes: Kept[] = [];

  /** Empty, at a position; `bytes` and `items` bound what it keeps, and so many `marks` more than items. */
  constructor(
    position: number,
    bytes: number = limits.streamRingBytes.value,
    items: number = limits.streamRingItems.value,
    marks: number = limits.streamRingMarks.value,
  ) {
    this.#start = position;
    this.#end = position;
    this.#bytes = bytes;
    this.#most = items;
    this.#marks = marks;
  }

  /** Audio before it was settled. */
  get start(): number {
    return this.#start;
  }

  /** Where audio goes on. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.#end - this.#start;
  }

  /** Memory that the ring takes, bytes: that of its audio, free pieces and notes included. */
  get memory(): number {
    return this.#slabBytes + (this.next - this.#first) * limits.streamNoteBytes.value;
  }

  /** Number of the first item, and of the one that comes next. */
  get first(): number {
    return this.#first;
  }

  get next(): number {
    return this.#first + this.#items.length - this.#gone;
  }

  hasRoom(bytes: number, items = 1): boolean {
    return this.bytes + bytes <= this.#bytes && this.next - this.#first + items <= this.#most;
  }

  /** Takes a message of audio that lasts so long, whole or not at all. What it lies in may be used again then. */
  push(audio: Uint8Array, seconds: number): boolean {
    const { length } = audio;
    if (!this.hasRoom(length)) return false;
    const slab = this.#slabFor(length);
    const at = slab.filled;
    slab.bytes.set(audio, at);
    slab.filled += length;
    slab.kept += 1;
    this.#items.push(this.#note(this.#end, slab, at, length, seconds));
    this.#end += length;
    return true;
  }

  /** Returns a slab with room for a message. A message over half a slab gets one of its own length: two do not fit. */
  #slabFor(length: number): Slab {
    const size = limits.streamSlabBytes.value;
    if (length > size / 2) return this.#newSlab(length);
    if (!this.#slab || this.#slab.filled + length > size) {
      if (this.#slab?.kept === 0) this.#slab.filled = 0;
      else this.#slab = this.#slabs.pop() ?? this.#newSlab(size);
    }
    return this.#slab as Slab;
  }

  #newSlab(size: number): Slab {
    this.#slabBytes += size;
    return { bytes: new Uint8Array(size), filled: 0, kept: 0 };
  }

  #note(position: number, slab: Slab, at: number, length: number, seconds: number): Kept {
    const note = this.#notes.pop();
    if (!note) return { kind: 'audio', position, slab, at, length, seconds };
    note.position = position;
    note.slab = slab;
    note.at = at;
    note.length = length;
    note.seconds = seconds;
    return note;
  }

  #free(note: Kept): void {
    const { slab } = note;
    slab.kept -= 1;
    note.slab = noSlab;
    if (this.#notes.length < limits.streamSpareNotes.value) this.#notes.push(note);
    if (slab.kept > 0 || slab === this.#slab) return;
    slab.filled = 0;
    const size = slab.bytes.length;
    if (size === limits.streamSlabBytes.value && this.#slabs.length < limits.streamSpareSlabs.value) {
      this.#slabs.push(slab);
    } else this.#slabBytes -= size;
  }

  /** Notes what is to happen at the end, or later in a replay. False when there is no room for it. */
  mark(mark: Mark): boolean {
    if (this.next - this.#first >= this.#most + this.#marks) return false;
    this.#items.push({ kind: 'mark', position: this.#end, mark });
    return true;
  }

  /**
   * The item with that number, the first one cut where the settled part ends; `undefined` past the last. Its audio may be
   * read until it is settled.
   */
  at(number: number): RingItem | undefined {
    if (number < this.#first) return undefined;
    const item = this.#items[number - this.#first + this.#gone];
    if (item?.kind !== 'audio') return item;
    const { slab, at, length, seconds } = item;
    const cut = Math.max(0, this.#start - item.position);
    const audio = slab.bytes.subarray(at + cut, at + length);
    return { kind: 'audio', position: item.position + cut, audio, seconds: (seconds * (length - cut)) / length };
  }

  /**
   * Forgets the audio before `position`, and the marks there that `done` holds for, given where they are and their
   * number: one that was sent may still wait for its answer. `position` lies between start and end.
   */
  settle(position: number, done: (mark: Mark, number: number) => boolean): void {
    if (position < this.#start || position > this.#end) throw new RangeError('settled what was not there');
    this.#start = position;
    const waiting: Item[] = [];
    let at = this.#gone;
    for (; at < this.#items.length; at++) {
      const item = this.#items[at] as Item;
      if (item.position > position) break;
      if (item.kind === 'audio') {
        if (item.position + item.length > position) break;
        this.#free(item);
      } else if (!done(item.mark, this.#first + at - this.#gone)) waiting.push(item);
    }
    // What waits keeps its order, and takes the numbers before the first item that stays.
    at -= waiting.length;
    for (const [index, item] of waiting.entries()) this.#items[at + index] = item;
    this.#first += at - this.#gone;
    this.#gone = at;
    this.#compact();
  }

  /** Memory of what was settled goes now and then, so that each message costs the same. */
  #compact(): void {
    this.#items.fill(nothing, 0, Math.min(this.#gone, this.#items.length));
    if (this.#gone * 2 < this.#items.length || this.#gone < 64) return;
    this.#items = this.#items.slice(this.#gone);
    this.#gone = 0;
  }
}

/** Notes that nobody needs hold no memory. */
const noSlab: Slab = { bytes: new Uint8Array(0), filled: 0, kept: 0 };
const nothing: Item = { kind: 'mark', position: 0, mark: { type: 'clear', id: 0, position: 0 } };
