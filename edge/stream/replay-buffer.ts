import { KiB, MiB } from '../../shared/bytes.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../shared/seal/limits.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import { CHECKPOINT_CHARACTERS } from '../../shared/stream/limits.ts';
import type { Checkpoint, LinkControl, StreamOptions } from '../../shared/stream/link.ts';
import { AudioClock } from './audio-clock.ts';
import { AudioRing, type Mark, STREAM_NOTE_BYTES, STREAM_SLAB_BYTES } from './audio-ring.ts';
import { PendingRequests, type RequestType } from './pending-requests.ts';
import { SendWindow } from './send-window.ts';

/**
 * Audio in transit to an agent that has not reported its position: five seconds of the widest format, and one
 * step of a rebuild.
 */
export const STREAM_WINDOW_BYTES = 512 * KiB;
/**
 * Unacknowledged audio of one open utterance at which the edge ends it: a wider format would fill a counting
 * client's window.
 */
export const STREAM_RELIEF_BYTES = 2.5 * MiB;
/**
 * Unacknowledged messages of one open utterance at which the edge ends it: three quarters of
 * STREAM_RING_ITEMS_MAX.
 */
export const STREAM_RELIEF_ITEMS = 49_152;
/** Small waiting messages that share one record: sealing costs the same for each. */
const STREAM_COALESCED_BYTES = 16 * KiB;

/** Bytes of audio in one record at most, a multiple of every sample and frame. */
const MAX_PIECE = SEAL_SEGMENT_BYTES - 64;
/** Buffered messages are joined up to this size: sealing has a fixed cost per record. */
const MAX_JOINED = STREAM_COALESCED_BYTES;
const WINDOW = STREAM_WINDOW_BYTES;
/** Memory of a joined frame, reused: its receiver has sealed it before the next call. */
const joined = new Uint8Array(MAX_JOINED);

/** One record for the agent. */
export type Frame =
  | { readonly kind: 'audio'; readonly position: number; readonly audio: Uint8Array }
  | { readonly kind: 'control'; readonly control: LinkControl };

/** Audio with a position that did not fit. The client sends it again from `position`. */
export interface Overflow {
  readonly position: number;
  readonly bytes: number;
  readonly seconds: number;
}

export interface ReplayBufferOptions {
  readonly format: StreamFormat;
  readonly options: StreamOptions;
  /** Checkpoint of a resumed session. */
  readonly from?: Checkpoint | undefined;
  /** Reports whether the memory budget allows so many more bytes. */
  readonly mayGrow?: (bytes: number) => boolean;
}

/**
 * A client's audio and requests since the last checkpoint. Sends them to the current agent within its window, and again
 * from the checkpoint to the next agent.
 */
export class ReplayBuffer {
  readonly format: StreamFormat;
  readonly clock: AudioClock;
  readonly #ring: AudioRing;
  readonly #window: SendWindow;
  readonly #requests = new PendingRequests();
  readonly #mayGrow: (bytes: number) => boolean;
  /** Options at the checkpoint. */
  #options: StreamOptions;
  #checkpoint: Checkpoint | undefined;
  /** Position of the newest checkpoint that the agent announced; 0 before it announces one. */
  #announced = 0;
  /** Number of the next ring item to send. */
  #cursor: number;
  #ended = false;
  #endSent = false;
  /** Audio that did not fit and was not reported. */
  #overflow = { bytes: 0, seconds: 0 };
  /** The edge sent a client that counts positions back to an earlier one. */
  #isBehind = false;
  #appendedBytes = 0;

  constructor({ format, options, from, mayGrow = () => true }: ReplayBufferOptions) {
    this.format = format;
    this.clock = new AudioClock(format, from?.time ?? 0);
    this.#options = options;
    this.#checkpoint = from;
    this.#mayGrow = mayGrow;
    this.#ring = new AudioRing(from?.position ?? 0);
    this.#window = new SendWindow(this.#ring.start);
    this.#cursor = this.#ring.first;
  }

  /** Position of the next byte that the client sends. */
  get position(): number {
    return this.#ring.end;
  }

  /** Position of the last checkpoint, where the next agent begins. */
  get start(): number {
    return this.#ring.start;
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  get bufferedBytes(): number {
    return this.#ring.bytes;
  }

  /** Bytes appended in this object. */
  get appendedBytes(): number {
    return this.#appendedBytes;
  }

  /** Bytes of memory in use. */
  get memory(): number {
    return this.#ring.memory;
  }

  /** Number of `finalize` and `clear` requests without an answer. */
  get pendingRequests(): number {
    return this.#requests.size;
  }

  /** Whether the input has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  get endSent(): boolean {
    return this.#endSent;
  }

  /**
   * Whether one open utterance fills the buffer, so that only its end makes room. The agent has received everything
   * and has announced no checkpoint: where audio waits to be sent, received or recognised, room comes without a
   * `finalize`, which would cut a word.
   */
  get needsFinalize(): boolean {
    const { bytes, first, next, start, end } = this.#ring;
    if (this.#cursor < next || this.#window.acknowledged < end || this.#announced > start) return false;
    return bytes > STREAM_RELIEF_BYTES || next - first >= STREAM_RELIEF_ITEMS;
  }

  /**
   * Appends one message, without the part that is already buffered. Returns `overflow` for the first message with a
   * position that does not fit. Refuses with `frame_invalid` a position that leaves a gap, and with `backlog_full` audio
   * without a position that does not fit: its client cannot send it again.
   */
  append(audio: Uint8Array, position?: number): Result<'done' | 'overflow'> {
    if (position === undefined) return this.#push(audio) ? done : no(refuse('backlog_full'));
    const end = this.#ring.end;
    if (position === end) return this.#push(audio) ? done : this.#noteOverflow(audio);
    // Audio behind a message that did not fit is ignored until the client goes back.
    if (position > end) return this.#isBehind ? done : invalid(`audio is missing before position ${position}`);
    if (position + audio.length <= end) return done;
    if (this.format.encoding === 'opus') return invalid('a packet was sent again with other bounds');
    const rest = audio.subarray(end - position);
    return this.#push(rest) ? done : this.#noteOverflow(rest);
  }

  /** Returns false when the audio does not fit. Audio after the end of the input is dropped. */
  #push(audio: Uint8Array): boolean {
    const { length } = audio;
    if (length === 0 || this.#ended) return true;
    const pieces = Math.ceil(length / MAX_PIECE);
    if (!this.#mayGrow(memoryFor(length)) || !this.#ring.hasRoom(length, pieces)) return false;
    const seconds = this.clock.measure(audio);
    if (pieces === 1) this.#ring.push(audio, seconds);
    else {
      for (let at = 0; at < length; at += MAX_PIECE) {
        const piece = audio.subarray(at, at + MAX_PIECE);
        this.#ring.push(piece, (seconds * piece.length) / length);
      }
    }
    this.clock.receive(seconds);
    this.#appendedBytes += length;
    this.#isBehind = false;
    return true;
  }

  /** Returns `overflow` once for a flood; its rest is reported by later calls of `takeOverflow`. */
  #noteOverflow(audio: Uint8Array): Result<'done' | 'overflow'> {
    const first = !this.#isBehind;
    this.#isBehind = true;
    this.#overflow.bytes += audio.length;
    this.#overflow.seconds += this.clock.estimate(audio);
    return first ? overflow : done;
  }

  /** Returns the audio that did not fit since the last call, if any. */
  takeOverflow(): Overflow | undefined {
    const { bytes, seconds } = this.#overflow;
    if (bytes === 0) return undefined;
    this.#overflow = { bytes: 0, seconds: 0 };
    return { position: this.#ring.end, bytes, seconds };
  }

  /**
   * Reports whether the client may end the input: not while it has to send audio again. An input that the edge has
   * ended stays ended for the edge's reason.
   */
  get isWhole(): boolean {
    return !this.#isBehind || this.#ended;
  }

  /**
   * Reports whether the session waits for memory alone: audio did not fit, and the agent has all that did. An agent
   * settles audio at the end of an utterance, so only more audio would free what is buffered.
   */
  get isStarved(): boolean {
    return this.#isBehind && !this.#ended && this.#window.acknowledged === this.#ring.end;
  }

  end(): void {
    this.#ended = true;
  }

  /**
   * Adds a request at the current position. Returns `answered` for a repeated request whose answer may have been lost,
   * and `full` when there is no room for it.
   */
  request(type: RequestType, id: number): 'pending' | 'answered' | 'full' {
    if (this.#requests.wasAnswered(type, id)) return 'answered';
    if (this.#requests.isPending(type, id) || this.#ended) return 'pending';
    if (!this.#ring.mark({ type, id, position: this.#ring.end })) return 'full';
    this.#requests.add(type, id);
    return 'pending';
  }

  /** Notes the agent's answer. Returns false when the request is unknown or was answered before. */
  answer(type: RequestType, id: number): boolean {
    return this.#requests.answer(type, id);
  }

  /** Changes options from the current position on. Returns false when there is no room. */
  setOptions(options: StreamOptions): boolean {
    return this.#ended || this.#ring.mark({ type: 'options', options });
  }

  /** Returns options and checkpoint with which the next agent begins. */
  origin(): { readonly options: StreamOptions; readonly from: Checkpoint | undefined } {
    return { options: this.#options, from: this.#checkpoint };
  }

  /** Goes back to the last checkpoint, for another agent. */
  rewind(): void {
    this.#window.reset(this.#ring.start);
    this.#cursor = this.#ring.first;
    this.#endSent = false;
  }

  /** Returns the next frame that the window allows. Its audio is valid until the next call of any replay buffer. */
  next(): Frame | undefined {
    const item = this.#ring.at(this.#cursor);
    if (!item) {
      if (!this.#ended || this.#endSent) return undefined;
      this.#endSent = true;
      return { kind: 'control', control: { type: 'end' } };
    }
    if (item.kind === 'mark') {
      this.#cursor += 1;
      return { kind: 'control', control: moveTo(item.mark, this.#ring.start) };
    }
    if (!this.#window.maySend(item.audio.length, WINDOW)) return undefined;
    this.#cursor += 1;
    const frame = this.format.encoding === 'opus' ? item : this.#join(item);
    this.#window.send(frame.audio.length);
    return frame;
  }

  /** Joins a message with those behind it. Packets of Opus are never joined. */
  #join(first: Extract<Frame, { kind: 'audio' }>): Extract<Frame, { kind: 'audio' }> {
    let total = first.audio.length;
    const from = this.#cursor;
    for (;;) {
      const length = this.#ring.lengthAt(this.#cursor);
      if (length === 0 || total + length > MAX_JOINED || !this.#window.maySend(total + length, WINDOW)) break;
      total += length;
      this.#cursor += 1;
    }
    if (this.#cursor === from) return first;
    joined.set(first.audio);
    let filled = first.audio.length;
    for (let number = from; number < this.#cursor; number++) {
      const item = this.#ring.at(number);
      if (item?.kind !== 'audio') break;
      joined.set(item.audio, filled);
      filled += item.audio.length;
    }
    return { kind: 'audio', position: first.position, audio: joined.subarray(0, total) };
  }

  /**
   * Notes that the agent received the audio up to `position`, and sends a checkpoint up to `announced` without more audio.
   * Returns false when one of them was not sent: the agent cannot be trusted with the rest.
   */
  acknowledge(position: number, time: number, announced = 0): boolean {
    if (announced > position || !this.#window.acknowledge(position)) return false;
    this.#announced = announced;
    this.clock.process(time, this.#ring.end - position);
    this.clock.calibrate(position, time);
    return true;
  }

  /** Drops everything before a checkpoint. Returns false when it cannot be one of this stream. */
  commit(checkpoint: Checkpoint): boolean {
    const { position, time, state } = checkpoint;
    if (position < this.#ring.start || position > this.#window.sent) return false;
    if (state.length > CHECKPOINT_CHARACTERS) return false;
    this.#ring.trim(position, (mark, number) => {
      if (number >= this.#cursor) return false;
      if (mark.type === 'options') this.#options = mark.options;
      else return !this.#requests.isPending(mark.type, mark.id);
      return true;
    });
    this.#checkpoint = checkpoint;
    this.clock.process(time, this.#ring.end - position);
    this.#window.acknowledge(position);
    return true;
  }
}

/** Returns the most memory that a message takes: its audio, a slab that it begins, and the entries of its pieces. */
export const memoryFor = (bytes: number): number =>
  bytes + STREAM_SLAB_BYTES + Math.ceil(bytes / MAX_PIECE) * STREAM_NOTE_BYTES;

/** Moves a mark before the start of the ring to the start. */
function moveTo(mark: Mark, start: number): LinkControl {
  return mark.type === 'options' || mark.position >= start ? mark : { ...mark, position: start };
}

const done = ok('done' as const);
const overflow = ok('overflow' as const);
const invalid = (rule: string): { ok: false; refusal: Refusal } => no(refuse('frame_invalid', { rule }));
