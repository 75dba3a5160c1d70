import { KiB } from '../../../../shared/bytes.ts';
import { ANSWER_SILENCE_MS } from '../../../../shared/pool/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import type { Result } from '../../../../shared/result.ts';
import type { Opened, Opener, Sealer } from '../../../../shared/seal/records.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import type { Clock } from './clock.ts';
import type { StreamSocket } from './web-socket.ts';

/** Messages of a stream that wait to be opened; beyond it the agent stops reading its socket. */
export const STREAM_QUEUE_BYTES = 256 * KiB;
/** Events an edge has not read; beyond it the agent sends no interims and stops reading its audio. */
const STREAM_UNSENT_BYTES = 128 * KiB;

/** The agent's side of the socket of one stream: sealed records in order, both ways. */
export interface Link {
  /** Sends events in the order of the calls. Sends nothing after a `final` or `refusal`, and then closes the socket. */
  send(event: LinkEvent): void;
  /** Reports whether the edge leaves events unread. */
  congested(): boolean;
  /** Resolves when the edge reads again, or the socket has closed. */
  flowing(): Promise<void>;
}

export interface LinkParts {
  readonly socket: StreamSocket;
  readonly opener: Opener;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly keepaliveMs: number;
  /** Takes one record. The next one follows when the promise has resolved, or at once without a promise. */
  readonly onRecord: (plaintext: Uint8Array, final: boolean) => Promise<void> | undefined;
  /** The edge has sent something that it may not send. */
  readonly onBroken: (refusal: Refusal) => void;
  /** The socket has closed. */
  readonly onGone: () => void;
  readonly onBug: (error: unknown) => void;
}

const NORMAL = 1000;
const encoder = new TextEncoder();
/** Memory that most events fit into; sealing copies them. */
const eventBuffer = new Uint8Array(16_384);

function encodeEvent(event: LinkEvent): Uint8Array {
  const text = JSON.stringify(event);
  // A character takes three bytes at most.
  if (3 * text.length > eventBuffer.length) return encoder.encode(text);
  return eventBuffer.subarray(0, encoder.encodeInto(text, eventBuffer).written);
}

export class SocketLink implements Link {
  readonly #parts: LinkParts;
  /** Messages that wait to be opened, and their bytes. */
  #queue: Uint8Array[] = [];
  #queued = 0;
  #reading = false;
  #paused = false;
  /** A `final` or `refusal` was sent. */
  #ended = false;
  #closed = false;
  /** A message could not be opened. */
  #broken = false;
  /** Bytes of events that are not handed to the socket yet. */
  #unsealed = 0;
  #last: Promise<void> = Promise.resolve();
  /** Records that are sent when `#last` has resolved. */
  #pending = 0;
  #onFlow: (() => void)[] = [];
  /** Beats since the last sign of the edge. Counted, since a clock would blame it for a pause of this process. */
  #silentBeats = 0;
  #sentAt: number;
  #stopBeat = () => {};

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#sentAt = parts.clock.now();
    parts.socket.listen({
      message: (data, isBinary) => this.#onMessage(data, isBinary),
      pong: () => {
        this.#silentBeats = 0;
      },
      closed: () => this.#onClosed(),
    });
    this.#beat();
  }

  send(event: LinkEvent): void {
    if (this.#ended || this.#closed) return;
    const final = event.type === 'final' || event.type === 'refusal';
    this.#ended = final;
    const bytes = encodeEvent(event);
    const { length } = bytes;
    this.#unsealed += length;
    const record = this.#parts.sealer.seal(bytes, final);
    // The last record closes the socket, and its sender still has something to do before.
    if (this.#pending === 0 && !final && !(record instanceof Promise)) {
      this.#write(record, length, final);
      return;
    }
    this.#pending++;
    this.#last = this.#last
      .then(() => record)
      .then((sealed) => {
        this.#pending--;
        this.#write(sealed, length, final);
      })
      .catch(this.#parts.onBug);
  }

  congested(): boolean {
    return !this.#closed && this.#parts.socket.unsent() + this.#unsealed > STREAM_UNSENT_BYTES;
  }

  flowing(): Promise<void> {
    if (!this.congested()) return Promise.resolve();
    return new Promise((resolve) => this.#onFlow.push(resolve));
  }

  readonly #notifyFlow = (): void => {
    if (this.congested()) return;
    const waiting = this.#onFlow;
    this.#onFlow = [];
    for (const resume of waiting) resume();
  };

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#silentBeats = 0;
    if (this.#ended || this.#closed) return;
    const { onBroken, onBug, socket } = this.#parts;
    if (!isBinary) {
      onBroken(refuse('seal_broken', undefined, 'a text message'));
      return;
    }
    this.#queue.push(data);
    this.#queued += data.length;
    if (!this.#paused && this.#queued > STREAM_QUEUE_BYTES) {
      this.#paused = true;
      socket.pause();
    }
    if (this.#reading) return;
    try {
      this.#read();
    } catch (error) {
      onBug(error);
    }
  }

  #onClosed(): void {
    this.#closed = true;
    this.#queue = [];
    this.#stopBeat();
    this.#notifyFlow();
    this.#parts.onGone();
  }

  /** Takes the queue until something has to be waited for. A stream that keeps up makes no promise here. */
  #read(): void {
    this.#reading = true;
    for (let message = this.#queue.shift(); message && !this.#closed; message = this.#queue.shift()) {
      const { length } = message;
      const opened = this.#parts.opener.openWhole(message);
      const wait = opened instanceof Promise ? opened.then((one) => this.#take(one)) : this.#take(opened);
      if (this.#broken) return;
      if (wait) {
        wait.then(() => this.#continue(length)).catch(this.#parts.onBug);
        return;
      }
      this.#leaveQueue(length);
    }
    this.#reading = false;
  }

  #continue(length: number): void {
    if (this.#closed || this.#broken) return;
    this.#leaveQueue(length);
    this.#read();
  }

  #leaveQueue(length: number): void {
    this.#queued -= length;
    if (!this.#paused || this.#queued >= STREAM_QUEUE_BYTES / 2) return;
    this.#paused = false;
    this.#silentBeats = 0;
    this.#parts.socket.resume();
  }

  #take(opened: Result<readonly Opened[]>): Promise<void> | undefined {
    if (this.#closed) return undefined;
    if (opened.ok) return this.#takeRecords(opened.value, 0);
    this.#broken = true;
    this.#parts.onBroken(opened.refusal);
    return undefined;
  }

  #takeRecords(records: readonly Opened[], from: number): Promise<void> | undefined {
    for (let at = from; at < records.length && !this.#closed; at++) {
      const { plaintext, final } = records[at] as Opened;
      const taken = this.#parts.onRecord(plaintext, final);
      if (taken) return taken.then(() => this.#takeRecords(records, at + 1));
    }
    return undefined;
  }

  #write(record: Uint8Array, length: number, final: boolean): void {
    const { socket, clock } = this.#parts;
    this.#unsealed -= length;
    if (!socket.isOpen()) {
      this.#notifyFlow();
      return;
    }
    this.#sentAt = clock.now();
    socket.send(record, final ? () => this.#sendFarewell() : this.#notifyFlow);
  }

  #sendFarewell(): void {
    this.#notifyFlow();
    this.#parts.socket.close(NORMAL);
  }

  /** Shows the edge by keepalives that the agent is there, and checks by pings that the edge is. */
  #beat(): void {
    const { clock, socket, keepaliveMs } = this.#parts;
    const beatMs = keepaliveMs / 2;
    this.#stopBeat = clock.after(beatMs, () => {
      if (this.#closed || this.#ended) return;
      // A paused socket delivers no sign of the edge.
      if (!this.#paused && this.#silentBeats * beatMs > ANSWER_SILENCE_MS) return socket.terminate();
      this.#silentBeats++;
      if (clock.now() - this.#sentAt >= beatMs && !this.congested()) this.send({ type: 'keepalive' });
      // An edge that sends needs no ping.
      if (this.#silentBeats > 1 && socket.isOpen()) socket.ping();
      this.#beat();
    });
  }
}
