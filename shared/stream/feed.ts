import { limits } from '../limits.ts';
import { joined } from '../seal/bytes.ts';
import { secondsOf } from './duration.ts';
import { bytesPerSecond, type StreamFormat } from './format.ts';
import type { Checkpoint, LinkControl, StreamOptions } from './link.ts';
import { type Mark, Ring } from './ring.ts';
import { afterHeard, afterSent, maySend, openWindow, type Window } from './window.ts';

/** Largest piece of audio in one record, a multiple of every sample and frame. */
const PIECE = limits.sealSegmentBytes.value - 64;
/** Small messages that wait together go together, up to here: sealing costs the same for each record. */
const TOGETHER = limits.streamTogetherBytes.value;

/** What is to be said to the agent next. */
export type Portion =
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array }
  | { readonly kind: 'control'; readonly control: LinkControl };

/**
 * What a client said, on its way to whichever agent hears it: everything since the last checkpoint is kept, and can be
 * said again from there. Times are seconds from the first sample.
 */
export class Feed {
  readonly format: StreamFormat;
  readonly #ring: Ring;
  /** Options where the last checkpoint is. */
  #base: StreamOptions;
  #checkpoint: Checkpoint | undefined;
  #window: Window;
  /** Position of the newest checkpoint that the agent has announced; 0 before it announces one. */
  #cut = 0;
  /** Number of the next item to send. */
  #cursor: number;
  /** Time of the ring's end, and seconds of audio that were taken in all. */
  #time: number;
  #taken = 0;
  /** Seconds of audio that an agent has heard. */
  #heard = 0;
  /** Seconds of a byte, as far as it was heard. */
  #pace = 0;
  /** Finalize and clear that no agent has answered. */
  readonly #asked = new Set<string>();
  /** The last ones that were answered. */
  readonly #answered = new Set<string>();
  #ended = false;
  #endSent = false;

  constructor(format: StreamFormat, options: StreamOptions, from?: Checkpoint) {
    this.format = format;
    this.#base = options;
    this.#checkpoint = from;
    this.#ring = new Ring(from?.position ?? 0);
    this.#window = openWindow(this.#ring.start);
    this.#cursor = this.#ring.first;
    this.#time = from?.time ?? 0;
    this.#taken = this.#time;
    this.#heard = this.#time;
  }

  /** Where the client's audio goes on, and what time that is. */
  get position(): number {
    return this.#ring.end;
  }

  get time(): number {
    return this.#time;
  }

  /** Seconds of audio that were taken since the beginning of the session. */
  get taken(): number {
    return this.#taken;
  }

  /** Seconds of audio that an agent has heard since the beginning of the session. */
  get heardSeconds(): number {
    return this.#heard;
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  /** Where an agent that begins now will begin. */
  get start(): number {
    return this.#ring.start;
  }

  get unsettled(): number {
    return this.#ring.bytes;
  }

  /** Memory that unsettled audio takes, bytes. */
  get memory(): number {
    return this.#ring.memory;
  }

  /**
   * Whether one open utterance takes the buffer, so that only its end makes room. The agent has heard everything and
   * has announced no checkpoint: where sound waits to be sent, heard or recognised, room comes without a `finalize`,
   * which would cut a word.
   */
  get crowded(): boolean {
    const { bytes, first, next, start, end } = this.#ring;
    if (this.#cursor < next || this.#window.heard < end || this.#cut > start) return false;
    return bytes > limits.streamReliefBytes.value || next - first >= limits.streamReliefItems.value;
  }

  /** Questions without an answer. */
  get waiting(): number {
    return this.#asked.size;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get endSent(): boolean {
    return this.#endSent;
  }

  /** Returns the most memory that a message takes: its audio, a slab that it begins, and notes of its pieces. */
  memoryFor(audio: Uint8Array): number {
    const notes = Math.ceil(audio.length / PIECE) * limits.streamNoteBytes.value;
    return audio.length + limits.streamSlabBytes.value + notes;
  }

  /** Would a message be taken now. */
  hasRoom(audio: Uint8Array): boolean {
    return !this.#ended && this.#ring.hasRoom(audio.length, Math.ceil(audio.length / PIECE));
  }

  /** Takes one message of audio, whole or not at all. */
  take(audio: Uint8Array): boolean {
    if (!this.hasRoom(audio)) return false;
    const seconds = this.secondsOf(audio);
    const pieces = Math.ceil(audio.length / PIECE);
    for (let at = 0; at < audio.length; at += PIECE) {
      const piece = pieces === 1 ? audio : audio.subarray(at, at + PIECE);
      this.#ring.push(piece, (seconds * piece.length) / audio.length);
    }
    this.#time += seconds;
    this.#taken += seconds;
    return true;
  }

  /** Seconds of a message; 0 where only the agent can tell. */
  secondsOf(audio: Uint8Array): number {
    return secondsOf(audio, this.format) ?? 0;
  }

  /** The same of a message that no agent will hear: as long as what was heard of the same size. */
  estimate(audio: Uint8Array): number {
    return secondsOf(audio, this.format) ?? audio.length * this.#pace;
  }

  /** A question that is asked again, since its answer may have been lost, is not asked twice; `full`: it cannot be noted. */
  ask(type: 'finalize' | 'clear', id: number): 'asked' | 'answered' | 'full' {
    const key = `${type} ${id}`;
    if (this.#answered.has(key)) return 'answered';
    if (this.#asked.has(key) || this.#ended) return 'asked';
    if (!this.#ring.mark({ type, id, position: this.#ring.end })) return 'full';
    this.#asked.add(key);
    return 'asked';
  }

  /** The agent answered; false when nobody asked, or it was answered before. */
  answered(type: 'finalize' | 'clear', id: number): boolean {
    const key = `${type} ${id}`;
    if (!this.#asked.delete(key)) return false;
    this.#answered.add(key);
    const [oldest] = this.#answered;
    if (oldest !== undefined && this.#answered.size > limits.streamAnswers.value) this.#answered.delete(oldest);
    return true;
  }

  /** False when it cannot be noted. After the end it would change nothing. */
  change(options: StreamOptions): boolean {
    return this.#ended || this.#ring.mark({ type: 'options', options });
  }

  /** There will be no more audio. */
  end(): void {
    this.#ended = true;
  }

  /** How an agent that begins now has to begin. */
  origin(): { readonly options: StreamOptions; readonly from: Checkpoint | undefined } {
    return { options: this.#base, from: this.#checkpoint };
  }

  /** Another agent begins: `next` tells everything since the last checkpoint again. */
  rewind(): void {
    this.#window = openWindow(this.#ring.start);
    this.#cursor = this.#ring.first;
    this.#endSent = false;
  }

  /** What may be said now; `undefined` when there is nothing, or the agent has not heard enough of what it was told. */
  next(): Portion | undefined {
    const item = this.#ring.at(this.#cursor);
    if (!item) {
      if (!this.#ended || this.#endSent) return undefined;
      this.#endSent = true;
      return { kind: 'control', control: { type: 'end' } };
    }
    if (item.kind === 'mark') {
      this.#cursor += 1;
      return { kind: 'control', control: placed(item.mark, this.#ring.start) };
    }
    if (!maySend(this.#window, item.audio.length, limits.streamWindowBytes.value)) return undefined;
    this.#cursor += 1;
    const audio = this.format.encoding === 'opus' ? item.audio : this.#withFollowing(item.audio);
    this.#window = afterSent(this.#window, audio.length);
    return { kind: 'audio', position: item.position, audio };
  }

  #withFollowing(first: Uint8Array): Uint8Array {
    const pieces = [first];
    let length = first.length;
    for (;;) {
      const item = this.#ring.at(this.#cursor);
      if (item?.kind !== 'audio' || length + item.audio.length > TOGETHER) break;
      if (!maySend(this.#window, length + item.audio.length, limits.streamWindowBytes.value)) break;
      pieces.push(item.audio);
      length += item.audio.length;
      this.#cursor += 1;
    }
    return pieces.length === 1 ? first : joined(pieces);
  }

  /**
   * Notes that the agent has taken audio up to `position`, and sends a checkpoint up to `cut` without more audio.
   * Returns false when one of them was not sent: the agent cannot be trusted with the rest.
   */
  heard(position: number, time: number, cut = 0): boolean {
    const window = afterHeard(this.#window, position);
    if (!window || cut > position) return false;
    this.#window = window;
    this.#cut = cut;
    this.#reach(position, time);
    if (position > 0) this.#pace = time / position;
    if (this.format.encoding === 'ogg-opus') this.#time = Math.max(this.#time, time);
    return true;
  }

  /** Notes that an agent has heard all of a stream, which lasts until `time`. */
  lasted(time: number): void {
    this.#reach(this.#ring.end, time);
    this.#heard = this.#taken;
  }

  /** Notes how far an agent has heard: where the format does not tell how long audio is, its time does. */
  #reach(position: number, time: number): void {
    const rate = bytesPerSecond(this.format);
    if (rate === undefined) this.#taken = Math.max(this.#taken, time);
    const heard = rate === undefined ? time : this.#taken - (this.#ring.end - position) / rate;
    this.#heard = Math.max(this.#heard, heard);
  }

  /** Everything before the checkpoint is settled. False when it cannot be one of this stream. */
  settle(checkpoint: Checkpoint): boolean {
    const { position, time, state } = checkpoint;
    if (position < this.#ring.start || position > this.#window.sent) return false;
    if (state.length > limits.checkpointCharacters.value) return false;
    this.#ring.settle(position, (mark, number) => {
      if (number >= this.#cursor) return false;
      if (mark.type === 'finalize' || mark.type === 'clear') return !this.#asked.has(`${mark.type} ${mark.id}`);
      if (mark.type === 'options') this.#base = mark.options;
      return true;
    });
    this.#checkpoint = checkpoint;
    this.#reach(position, time);
    this.#window = { sent: this.#window.sent, heard: Math.max(this.#window.heard, position) };
    return true;
  }
}

/** A mark whose place was settled meanwhile concerns what comes now. */
function placed(mark: Mark, start: number): LinkControl {
  return mark.type === 'options' || mark.position >= start ? mark : { ...mark, position: start };
}
