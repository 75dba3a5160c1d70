import { KiB } from '../../shared/bytes.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { SEAL_SEGMENT_BYTES } from '../../shared/seal/limits.ts';
import type { LinkEvent } from '../../shared/stream/link.ts';
import { encodeAudio, encodeControl } from '../../shared/stream/link-record.ts';
import type { StreamCallAnswer } from '../routing/dial-stream.ts';
import { decodeLinkEvent } from './link-event.ts';
import type { Frame } from './replay-buffer.ts';
import { STREAM_WINDOW_BYTES } from './replay-buffer.ts';

/** Longest record that a link reuses a buffer for; larger ones belong to a replay. */
const STREAM_RECORD_BYTES = 8 * KiB;

/** Plaintext of the record that is being sealed. A sealer has read it when its call returns. */
const plaintext = new Uint8Array(SEAL_SEGMENT_BYTES);
const plaintextOf = (bytes: number): Uint8Array => plaintext.subarray(0, bytes);

export type AgentReady = Extract<LinkEvent, { type: 'ready' }>;

/** Receives what happens on a connection after its agent is ready, from `start` on. */
export interface AgentListener {
  onEvent(connection: AgentConnection, event: LinkEvent): void;
  /** The connection takes frames again. */
  onWritable(connection: AgentConnection): void;
  /** The connection is closed; called once, and not after `close`. */
  onLost(connection: AgentConnection, refusal: Refusal): void;
  /** The listener threw; the connection is closed. */
  onError(error: unknown): void;
}

/** One sealed WebSocket to an agent: frames out and events in, each in order. */
export class AgentConnection {
  readonly agent: string;
  /** Resolves with the first event of the agent, if that is `ready`. */
  readonly ready: Promise<Result<AgentReady>>;
  readonly #answer: StreamCallAnswer;
  readonly #listener: AgentListener;
  readonly #now: () => number;
  #resolveReady: ((ready: Result<AgentReady>) => void) | undefined;
  readonly #received: Uint8Array[] = [];
  #receivedBytes = 0;
  #sealing = false;
  #reading = false;
  #closed = false;
  /** Notifications between `ready` and `start`; `undefined` from then on. */
  #held: (() => void)[] | undefined = [];
  /** Memory of the next record, reused: audio comes ten times a second. */
  #record = new Uint8Array(0);
  readonly #recordOf = (bytes: number): Uint8Array => {
    if (bytes > STREAM_RECORD_BYTES) return new Uint8Array(bytes);
    if (this.#record.length < bytes) this.#record = new Uint8Array(bytes);
    return this.#record.subarray(0, bytes);
  };
  readonly #onSealed = (record: Uint8Array): void => {
    this.#sealing = false;
    this.#write(record);
    if (this.isWritable) this.#guard(() => this.#listener.onWritable(this));
  };
  readonly #onFailed = (error: unknown): void => {
    this.#lose(`sending: ${error instanceof Error ? error.name : 'unknown'}`);
  };
  /** Time of the last message of the agent, epoch ms. */
  receivedAt: number;

  constructor(agent: string, answer: StreamCallAnswer, listener: AgentListener, now: () => number) {
    this.agent = agent;
    this.#answer = answer;
    this.#listener = listener;
    this.#now = now;
    this.receivedAt = now();
    this.ready = new Promise((resolve) => {
      this.#resolveReady = resolve;
    });
    const { socket } = answer;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', ({ code }) => {
      this.#closeSocket();
      this.#lose(`closed by the agent: ${code}`);
    });
    socket.addEventListener('error', () => this.#lose('socket error'));
    socket.accept();
  }

  /** Whether `send` may be called: not while a frame is being sealed. */
  get isWritable(): boolean {
    return !(this.#closed || this.#sealing);
  }

  /** Seals and sends one frame; `end` is the last one. */
  send(frame: Frame): void {
    if (!this.isWritable) return;
    try {
      const record = this.#seal(frame);
      if (record instanceof Promise) {
        this.#sealing = true;
        record.then(this.#onSealed, this.#onFailed);
      } else this.#write(record);
    } catch (error) {
      this.#onFailed(error);
    }
  }

  /** Delivers the notifications buffered since `ready`, and later ones as they arrive. */
  start(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const notify of held) this.#guard(notify);
  }

  /** Closes the connection; the listener gets nothing more of it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#received.length = 0;
    this.#closeSocket();
  }

  #seal(frame: Frame): Uint8Array | Promise<Uint8Array> {
    const { sealer } = this.#answer;
    if (frame.kind === 'audio') {
      return sealer.seal(encodeAudio(frame.position, frame.audio, plaintextOf), false, this.#recordOf);
    }
    return sealer.seal(encodeControl(frame.control), frame.control.type === 'end', this.#recordOf);
  }

  #write(record: Uint8Array): void {
    if (this.#closed) return;
    try {
      this.#answer.socket.send(record);
    } catch (error) {
      this.#onFailed(error);
    }
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#closed) return;
    if (typeof data === 'string') {
      this.#lose('text where records are due');
      return;
    }
    this.receivedAt = this.#now();
    this.#received.push(new Uint8Array(data));
    this.#receivedBytes += data.byteLength;
    if (this.#receivedBytes > STREAM_WINDOW_BYTES) this.#lose('events faster than they can be read');
    else if (!this.#reading) void this.#read();
  }

  async #read(): Promise<void> {
    this.#reading = true;
    try {
      for (let next = this.#received.shift(); next; next = this.#received.shift()) {
        this.#receivedBytes -= next.byteLength;
        const opened = await this.#answer.opener.openWhole(next);
        if (this.#closed) return;
        if (!opened.ok) {
          this.#lose(opened.refusal.detail ?? 'a record does not open', 'seal_broken');
          return;
        }
        for (const record of opened.value) {
          this.#decode(record.plaintext, record.final);
          if (this.#closed) return;
        }
      }
    } catch (error) {
      this.close();
      this.#listener.onError(error);
    } finally {
      this.#reading = false;
    }
  }

  #decode(record: Uint8Array, final: boolean): void {
    const event = decodeLinkEvent(record);
    const isLast = event?.type === 'final' || event?.type === 'refusal';
    if (!event) this.#lose('an event is not understood');
    else if (isLast !== final) this.#lose('the final flag and the last event do not go together');
    else if (this.#resolveReady) this.#receiveFirst(event);
    else if (this.#held) this.#held.push(() => this.#listener.onEvent(this, event));
    else this.#listener.onEvent(this, event);
  }

  #receiveFirst(event: LinkEvent): void {
    if (event.type === 'keepalive') return;
    if (event.type === 'ready') this.#settleReady(ok(event));
    else {
      this.close();
      const isRefusal = event.type === 'refusal';
      const refusal = isRefusal
        ? refuse(event.reason, event.params, 'from the agent')
        : refuse('pool_lost', undefined, 'the first event is not ready');
      this.#settleReady(no(refusal));
    }
  }

  /** Resolves `ready`. Returns false when it was resolved before. */
  #settleReady(ready: Result<AgentReady>): boolean {
    const resolve = this.#resolveReady;
    this.#resolveReady = undefined;
    resolve?.(ready);
    return resolve !== undefined;
  }

  #lose(detail: string, reason: 'pool_lost' | 'seal_broken' = 'pool_lost'): void {
    if (this.#closed) return;
    this.close();
    const refusal = refuse(reason, undefined, detail);
    if (this.#settleReady(no(refusal))) return;
    const notify = () => this.#listener.onLost(this, refusal);
    if (this.#held) this.#held.push(notify);
    else this.#guard(notify);
  }

  #guard(notify: () => void): void {
    try {
      notify();
    } catch (error) {
      this.#listener.onError(error);
    }
  }

  #closeSocket(): void {
    try {
      this.#answer.socket.close(1000, '');
    } catch {
      // The socket was never open, or is closed.
    }
  }
}
