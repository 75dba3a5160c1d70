import { limits } from '../limits.ts';
import type { LinkControl } from './link.ts';

/** A control that has its place between two samples. */
export type Mark = Extract<LinkControl, { type: 'finalize' | 'clear' | 'gap' | 'options' }>;

export type RingItem =
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array; readonly seconds: number }
  | { readonly kind: 'mark'; readonly position: number; readonly mark: Mark };

/**
 * Audio that no agent has settled, as the client sent it: one item for each message, and between them what else has to
 * happen at a position. Items have numbers that grow by one, so that a reader can stop anywhere and go on, or go back.
 */
export class Ring {
  readonly #bytes: number;
  readonly #most: number;
  #items: RingItem[] = [];
  /** Number of the first item that is kept, and how many of `#items` are gone before it. */
  #first = 0;
  #gone = 0;
  #start: number;
  #end: number;

  /** Empty, at a position; `bytes` and `items` bound what it keeps. */
  constructor(
    position: number,
    bytes: number = limits.streamRingBytes.value,
    items: number = limits.streamRingItems.value,
  ) {
    this.#start = position;
    this.#end = position;
    this.#bytes = bytes;
    this.#most = items;
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

  /** Takes a message of audio that lasts so long, whole or not at all. */
  push(audio: Uint8Array, seconds: number): boolean {
    if (!this.hasRoom(audio.length)) return false;
    this.#items.push({ kind: 'audio', position: this.#end, audio, seconds });
    this.#end += audio.length;
    return true;
  }

  /** Notes what is to happen at the end, or later in a replay. False when there is no room for it. */
  mark(mark: Mark): boolean {
    if (this.next - this.#first >= this.#most) return false;
    this.#items.push({ kind: 'mark', position: this.#end, mark });
    return true;
  }

  /** The item with that number, the first one cut where the settled part ends; `undefined` past the last. */
  at(number: number): RingItem | undefined {
    if (number < this.#first) return undefined;
    const item = this.#items[number - this.#first + this.#gone];
    if (item?.kind !== 'audio' || item.position >= this.#start) return item;
    const cut = this.#start - item.position;
    const share = (item.audio.length - cut) / item.audio.length;
    return { ...item, position: this.#start, audio: item.audio.subarray(cut), seconds: item.seconds * share };
  }

  /**
   * Forgets the audio before `position`, and the marks there that `done` holds for, given where they are and their
   * number: one that was sent may still wait for its answer. `position` lies between start and end.
   */
  settle(position: number, done: (mark: Mark, at: number, number: number) => boolean): void {
    if (position < this.#start || position > this.#end) throw new RangeError('settled what was not there');
    this.#start = position;
    const waiting: RingItem[] = [];
    let at = this.#gone;
    for (; at < this.#items.length; at++) {
      const item = this.#items[at] as RingItem;
      if (item.position > position) break;
      if (item.kind === 'audio') {
        if (item.position + item.audio.length > position) break;
      } else if (!done(item.mark, item.position, this.#first + at - this.#gone)) waiting.push(item);
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

const nothing: RingItem = { kind: 'mark', position: 0, mark: { type: 'clear', id: 0, position: 0 } };
