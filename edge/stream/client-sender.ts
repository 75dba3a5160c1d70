import type { Outcome, SessionEvent } from '../protocol/live-protocol.ts';
import type { ClientSocket } from './client-socket.ts';
import { STREAM_STORED_SEGMENTS } from './limits.ts';

/** Events buffered for a disconnected client: half a minute has some thirty. */
export const STREAM_BUFFERED_EVENTS_MAX = 1_024;

type Segment = Extract<SessionEvent, { type: 'segment' }>;
type Ready = Extract<SessionEvent, { type: 'ready' }>;

/** Sends session events to the client's socket, and buffers them while the client is disconnected. */
export class ClientSender {
  #socket: ClientSocket | undefined;
  #buffered: SessionEvent[] = [];
  /** The last segments, for a client that resumes and lacks some. */
  readonly #segments: Segment[] = [];
  #ready: Ready | undefined;
  /** Time of the last disconnection, epoch ms. */
  disconnectedAt = 0;

  get socket(): ClientSocket | undefined {
    return this.#socket;
  }

  get ready(): Ready | undefined {
    return this.#ready;
  }

  connect(socket: ClientSocket): void {
    this.#socket = socket;
  }

  disconnect(now: number): void {
    this.disconnectedAt = now;
    this.#socket = undefined;
  }

  /** Announces the agent, once on each socket. */
  sendReady(ready: Ready): void {
    this.#ready = ready;
    this.#socket?.send(ready);
  }

  /** Announces another agent to the sockets that come after this one. */
  replaceReady(ready: Ready): void {
    this.#ready = ready;
  }

  /** Sends or buffers an event. Returns false when the buffer is full. */
  send(event: SessionEvent): boolean {
    if (event.type === 'segment') {
      this.#segments.push(event);
      if (this.#segments.length > STREAM_STORED_SEGMENTS) this.#segments.shift();
    }
    if (!this.#socket) return this.#buffer(event);
    this.#socket.send(event);
    return true;
  }

  /** Buffers an event. An interim supersedes every earlier interim of its utterance. */
  #buffer(event: SessionEvent): boolean {
    if (event.type === 'interim' || event.type === 'segment') {
      this.#buffered = this.#buffered.filter(({ type }) => type !== 'interim');
    }
    this.#buffered.push(event);
    return this.#buffered.length <= STREAM_BUFFERED_EVENTS_MAX;
  }

  /** Reports whether every segment from `next` on is available. `upcoming`: index of the next new segment. */
  canReplayFrom(next: number, upcoming: number): boolean {
    const [oldest] = this.#segments;
    return next >= upcoming || (oldest !== undefined && oldest.index <= next);
  }

  /** Replays to a resumed client: segments from `next` on if the client named one, and everything buffered. */
  replay(next: number | undefined): void {
    const buffered = this.#buffered;
    this.#buffered = [];
    if (this.#ready) this.#socket?.send(this.#ready);
    const requested = next === undefined ? [] : this.#segments.filter(({ index }) => index >= next);
    for (const event of requested) this.#socket?.send(event);
    for (const event of buffered) if (next === undefined || event.type !== 'segment') this.#socket?.send(event);
  }

  close(outcome: Outcome, onRead?: () => void): void {
    this.#socket?.close(outcome, onRead);
    this.#socket = undefined;
  }
}
