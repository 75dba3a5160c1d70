// Client for live streams, in browsers and in Node, without dependencies. Audio handed to `send` is buffered
// until the edge has settled it and sent again after a broken connection, also to an edge that has lost all
// state; it is lost only with this process. shared/stream/PROTOCOL.md defines the messages.

import { KiB } from '../../shared/bytes.ts';
import { POSITION_BYTES, writePosition } from '../../shared/stream/position.ts';
import { Backlog } from './backlog.ts';
import type { ClientRuntime, ClientSocket, LiveStream, OpenOptions, SocketClass, StreamOptions } from './contract.ts';
import { EventQueue } from './event-queue.ts';
import { type FinalEvent, StreamError, type StreamEvent } from './events.ts';
import { Perseverance } from './perseverance.ts';

/** Interval of a client's pings on /v1/stream; it reconnects after two without an answer. */
const STREAM_PING_MS = 10_000;
/** Silence after which an edge is lost: two pings are unanswered. */
const CLIENT_SILENCE_MS = 25_000;
/** Audio in one message: a second of 16 kHz sound; larger sends are cut, except packets. */
const CLIENT_MESSAGE_BYTES = 32 * KiB;
/** Unacknowledged audio before the edge has named its window: a sender waits then. */
const CLIENT_WINDOW_BYTES = 512 * KiB;

export type { ClientRuntime, ClientSocket, LiveStream, OpenOptions, SocketClass } from './contract.ts';

export const openStream = (options: OpenOptions): LiveStream => new Client(options);

const PROTOCOL = 'auricle';
const TOKEN = 'auricle-token.';
const OPEN = 1;

const platform: ClientRuntime = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

interface Waiter<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

function waiter<T>(): Waiter<T> {
  let resolve!: Waiter<T>['resolve'];
  let reject!: Waiter<T>['reject'];
  const promise = new Promise<T>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  // An unobserved rejection must not become an unhandled one.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

class Client implements LiveStream {
  readonly events = new EventQueue();
  readonly #open: OpenOptions;
  readonly #around: ClientRuntime;
  readonly #Socket: SocketClass;
  readonly #packets: boolean;
  readonly #backlog = new Backlog();
  readonly #answers = new Map<string, Waiter<void>>();
  readonly #final = waiter<FinalEvent>();
  #room: Waiter<void> | undefined;
  #socket: ClientSocket | undefined;
  /** The edge has sent its position. */
  #started = false;
  #session: string | undefined;
  #resume: string | undefined;
  #window: number = CLIENT_WINDOW_BYTES;
  #options: Partial<StreamOptions>;
  /** Index of the next segment. */
  #next = 0;
  #ids = 0;
  #ended = false;
  #over = false;
  #failure: StreamError | undefined;
  readonly #perseverance: Perseverance;
  #receivedAt = 0;
  #seen = 0;
  #cancelPing = () => {};
  #cancelPause = () => {};

  constructor(open: OpenOptions) {
    this.#open = open;
    this.#around = open.runtime ?? platform;
    this.#Socket = open.WebSocket ?? (globalThis.WebSocket as unknown as SocketClass);
    this.#packets = open.format.encoding === 'opus';
    this.#options = open.options ?? {};
    this.#perseverance = new Perseverance(open, this.#around.now());
    void this.#connect();
  }

  async send(bytes: Uint8Array): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (this.#ended || this.#over) throw new StreamError('ended', 'The stream has ended.');
    // A copy: the caller may reuse its buffer after this call.
    const own = new Uint8Array(bytes);
    const step = this.#packets ? Math.max(1, own.length) : CLIENT_MESSAGE_BYTES;
    for (let at = 0; at < own.length; at += step) this.#backlog.push(own.subarray(at, at + step));
    this.#pump();
    while (this.#backlog.unsettled > this.#window && !this.#over) {
      this.#room ??= waiter<void>();
      await this.#room.promise;
    }
    if (this.#failure) throw this.#failure;
  }

  async sendAll(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    for await (const bytes of source) await this.send(bytes);
  }

  finalize(): Promise<void> {
    return this.#request('finalize');
  }

  clear(): Promise<void> {
    return this.#request('clear');
  }

  setOptions(options: Partial<StreamOptions>): void {
    this.#options = { ...this.#options, ...options };
    this.#backlog.mark({ type: 'options', options: this.#options });
    this.#pump();
  }

  end(): Promise<FinalEvent> {
    if (!this.#ended && !this.#over) {
      this.#ended = true;
      this.#backlog.mark({ type: 'end' });
      this.#pump();
    }
    return this.#final.promise;
  }

  close(): void {
    this.#finish(new StreamError('closed', 'The stream was closed.'));
  }

  #request(type: 'finalize' | 'clear'): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = this.#ids++;
    const answer = waiter<void>();
    this.#answers.set(`${type} ${id}`, answer);
    this.#backlog.mark({ type, id });
    this.#pump();
    return answer.promise;
  }

  async #connect(): Promise<void> {
    let token: string;
    try {
      token = typeof this.#open.token === 'string' ? this.#open.token : await this.#open.token();
    } catch {
      // A token source may be unreachable for the same reason as the edge.
      this.#retry();
      return;
    }
    if (this.#over) return;
    let socket: ClientSocket;
    try {
      socket = new this.#Socket(this.#address(), [PROTOCOL, TOKEN + token]);
    } catch {
      // An invalid address or token stays invalid on retry.
      this.#fail(new StreamError('address_invalid', 'No connection can be made with this address and token.'));
      return;
    }
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#started = false;
    this.#seen = 0;
    this.#receivedAt = this.#around.now();
    socket.onopen = () => this.#start(socket);
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#hear(data);
    };
    socket.onclose = ({ code }) => this.#lose(socket, code);
    socket.onerror = () => {};
    this.#watch(socket);
  }

  /** Returns the address. Throws when it is invalid. */
  #address(): string {
    const url = new URL(this.#open.url);
    url.protocol = url.protocol.replace('http', 'ws');
    if (this.#session !== undefined) url.searchParams.set('session', this.#session);
    if (this.#open.class !== undefined) url.searchParams.set('class', this.#open.class);
    return url.href;
  }

  #start(socket: ClientSocket): void {
    const { model, language, format } = this.#open;
    const options = this.#resume === undefined ? this.#open.options : (this.#backlog.options ?? this.#open.options);
    const resume = this.#resume === undefined ? {} : { resume: this.#resume, next: this.#next };
    socket.send(JSON.stringify({ type: 'start', v: 1, model, language, format, options, ...resume }));
  }

  #hear(data: unknown): void {
    this.#receivedAt = this.#around.now();
    this.#seen += 1;
    if (typeof data !== 'string') return;
    const message = JSON.parse(data) as StreamEvent & Record<string, never>;
    const act = acts[message.type as keyof typeof acts];
    if (act) this.#act(act, message);
    else if (message.type === 'segment') this.#segment(message);
    else if (message.type !== 'interim' || message.index >= this.#next) this.events.push(message);
  }

  #act(act: (typeof acts)[keyof typeof acts], message: Record<string, unknown>): void {
    switch (act) {
      case 'greet':
        this.#greet(message as { session: string; position: number; windowBytes: number });
        return;
      case 'settle':
        if (Number(message.position) > this.#backlog.start) this.#perseverance.settled();
        this.#resume = String(message.resume);
        this.#backlog.settle(Number(message.position));
        this.#wake();
        return;
      case 'answer':
        this.#answer(message.type === 'finalized' ? 'finalize' : 'clear', Number(message.id));
        return;
      case 'back':
        // The edge dropped later audio; it is sent again when there is capacity.
        this.#backlog.goTo(Number(message.position));
        return;
      case 'end':
        this.events.push(message as unknown as FinalEvent);
        this.#final.resolve(message as unknown as FinalEvent);
        this.#finish(undefined);
        return;
      case 'refuse':
        this.#refuse(message as { reason: string; message: string; request?: string });
        return;
      case 'nothing':
    }
  }

  #greet({ session, position, windowBytes }: { session: string; position: number; windowBytes: number }): void {
    if (this.#perseverance.greeted()) this.events.push({ type: 'resumed', position });
    this.#session = session;
    this.#window = windowBytes;
    if (position < this.#backlog.start || position > this.#backlog.end) {
      this.#fail(new StreamError('resume_invalid', 'The edge goes on where this client has nothing.'));
      return;
    }
    this.#backlog.goTo(position);
    this.#started = true;
    this.#pump();
  }

  #segment(segment: Extract<StreamEvent, { type: 'segment' }>): void {
    if (segment.index !== this.#next) return;
    this.#next += 1;
    this.events.push(segment);
  }

  #answer(type: 'finalize' | 'clear', id: number): void {
    this.#backlog.answered(type, id);
    this.#answers.get(`${type} ${id}`)?.resolve();
    this.#answers.delete(`${type} ${id}`);
  }

  #refuse({ reason, message, request }: { reason: string; message: string; request?: string }): void {
    if (this.#perseverance.isOver(reason, this.#started)) this.#fail(new StreamError(reason, message, request));
  }

  #pump(): void {
    const socket = this.#socket;
    if (!this.#started || socket?.readyState !== OPEN) return;
    for (let item = this.#backlog.next(this.#packets); item; item = this.#backlog.next(this.#packets)) {
      if (item.mark) socket.send(JSON.stringify(item.mark));
      else socket.send(positioned(item.position, item.audio));
    }
  }

  #wake(): void {
    if (this.#backlog.unsettled > this.#window && !this.#over) return;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #watch(socket: ClientSocket): void {
    this.#cancelPing();
    this.#cancelPing = this.#around.after(STREAM_PING_MS, () => {
      if (socket !== this.#socket) return;
      if (this.#around.now() - this.#receivedAt > CLIENT_SILENCE_MS) {
        socket.close(4000, 'silent');
        this.#lose(socket, 4000);
        return;
      }
      if (socket.readyState === OPEN) socket.send(JSON.stringify({ type: 'ping', seen: this.#seen }));
      this.#watch(socket);
    });
  }

  #lose(socket: ClientSocket, _code: number): void {
    if (socket !== this.#socket || this.#over) return;
    this.#socket = undefined;
    if (this.#started) this.#perseverance.lost(this.#around.now());
    this.#started = false;
    this.#retry();
  }

  #retry(): void {
    if (this.#over) return;
    this.#cancelPing();
    const next = this.#perseverance.next(this.#around.now(), this.#around.random());
    if (!next) {
      this.#fail(new StreamError('connection_lost', 'The edge could not be reached again.'));
      return;
    }
    this.events.push({ type: 'reconnecting', attempt: next.attempt });
    this.#cancelPause = this.#around.after(next.pauseMs, () => void this.#connect());
  }

  #fail(error: StreamError): void {
    this.#finish(error);
  }

  #finish(error: StreamError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = error;
    this.#cancelPing();
    this.#cancelPause();
    for (const answer of this.#answers.values()) {
      if (error) answer.reject(error);
      else answer.resolve();
    }
    if (error) this.#final.reject(error);
    this.#wake();
    this.events.close(error?.reason === 'closed' ? undefined : error);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close(1000, '');
  }
}

/** Messages that the client handles itself. */
const acts = {
  started: 'greet',
  ack: 'settle',
  finalized: 'answer',
  cleared: 'answer',
  overflow: 'back',
  final: 'end',
  refusal: 'refuse',
  pong: 'nothing',
} as const;

function positioned(position: number, audio: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(POSITION_BYTES + audio.length);
  writePosition(message, 0, position);
  message.set(audio, POSITION_BYTES);
  return message;
}
