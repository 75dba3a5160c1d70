// Live streams for apps: in browsers and in Node, without dependencies. Nothing that was handed to `send` is lost while
// the process lives: it is kept until the edge has settled it, and sent again after a broken connection, to an edge that
// may have forgotten everything. What goes over the wire is in shared/stream/PROTOCOL.md.
import { streamLimits } from '../../shared/limits/stream.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import { POSITION_BYTES, writePosition } from '../../shared/stream/position.ts';
import { Backlog } from './backlog.ts';
import { EventQueue } from './event-queue.ts';
import { type FinalEvent, StreamError, type StreamEvent } from './events.ts';

export interface OpenOptions {
  /** `wss://edge.example/v1/stream`; `https` and `http` are taken for `wss` and `ws`. */
  readonly url: string | URL;
  /** An access token, or what gives a fresh one: it is asked for each connection. */
  readonly token: string | (() => string | Promise<string>);
  readonly model: string;
  /** BCP 47. */
  readonly language?: string;
  readonly format: StreamFormat;
  readonly options?: Partial<StreamOptions>;
  /** Class of urgency to ask for; the token's ceiling holds. */
  readonly class?: string;
  /** Milliseconds without a session after which it gives up; 60,000 unless told. */
  readonly patienceMs?: number;
  /** Stands in for the platform's WebSocket, clock and chance. */
  readonly WebSocket?: SocketClass;
  readonly surroundings?: ClientSurroundings;
}

export interface ClientSurroundings {
  readonly now: () => number;
  readonly random: () => number;
  /** Calls back after `ms`; gives what takes the call back. */
  readonly after: (ms: number, call: () => void) => () => void;
}

/** What is used of a WebSocket, a browser's or another's. */
export interface ClientSocket {
  binaryType: string;
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: unknown) => void) | null;
  send(message: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}
export type SocketClass = new (url: string, protocols: string[]) => ClientSocket;

export interface LiveStream {
  /**
   * Takes audio: samples of the format, or one Opus packet. Resolves when there is room for more, so a source that
   * awaits it is never faster than the recogniser for long. Throws `StreamError` once the stream has failed.
   */
  send(bytes: Uint8Array): Promise<void>;
  /** Sends everything a source yields. */
  sendAll(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /** What was said so far is transcribed now; resolves after its segments. */
  finalize(): Promise<void>;
  /** What was said since the last segment is forgotten. */
  clear(): Promise<void>;
  setOptions(options: Partial<StreamOptions>): void;
  /** No more audio: resolves when everything was said. */
  end(): Promise<FinalEvent>;
  /** Everything that is told, for one reader. Ends after `final`; throws `StreamError` when the stream failed. */
  readonly events: AsyncIterable<StreamEvent>;
  /** Hangs up without waiting for anything. */
  close(): void;
}

export const openStream = (options: OpenOptions): LiveStream => new Client(options);

const PROTOCOL = 'auricle';
const TOKEN = 'auricle-token.';
/** Audio per message; larger sends are cut, but for packets. */
const MESSAGE_BYTES = 32 * 1024;
const PING_MS = streamLimits.streamPingMs.value;
const SILENCE_MS = 2.5 * PING_MS;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const MOST_FRUITLESS = 3;
const OPEN = 1;
/** Until the edge says more. */
const WINDOW_BYTES = 512 * 1024;

/** Refusals that another connection may well not meet; after any other one the stream has failed. */
const passing = new Set([
  ...['internal', 'pool_lost', 'pool_busy', 'no_pool', 'engine_failed', 'edge_busy', 'deadline_passed'],
  ...['identity_unavailable', 'audit_unavailable', 'allowance_concurrent'],
]);

const platform: ClientSurroundings = {
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
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  // Whoever does not wait does not have to hear of it.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

class Client implements LiveStream {
  readonly events = new EventQueue();
  readonly #open: OpenOptions;
  readonly #around: ClientSurroundings;
  readonly #Socket: SocketClass;
  readonly #packets: boolean;
  readonly #backlog = new Backlog();
  readonly #answers = new Map<string, Waiter<void>>();
  readonly #final = waiter<FinalEvent>();
  #room: Waiter<void> | undefined;
  #socket: ClientSocket | undefined;
  /** The edge has said where it goes on. */
  #started = false;
  #session: string | undefined;
  #resume: string | undefined;
  #window = WINDOW_BYTES;
  #options: Partial<StreamOptions>;
  /** Index of the next segment. */
  #next = 0;
  #ids = 0;
  #ended = false;
  #over = false;
  #failure: StreamError | undefined;
  #attempt = 0;
  /** Sessions that were refused under way since anything was settled. */
  #fruitless = 0;
  /** Tokens in a row that had expired when they came. */
  #expired = 0;
  #since: number;
  #heardAt = 0;
  #seen = 0;
  #cancelPing = () => {};
  #cancelPause = () => {};

  constructor(open: OpenOptions) {
    this.#open = open;
    this.#around = open.surroundings ?? platform;
    this.#Socket = open.WebSocket ?? (globalThis.WebSocket as unknown as SocketClass);
    this.#packets = open.format.encoding === 'opus';
    this.#options = open.options ?? {};
    this.#since = this.#around.now();
    void this.#connect();
  }

  async send(bytes: Uint8Array): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (this.#ended || this.#over) throw new StreamError('ended', 'The stream has ended.');
    // A copy: the caller's buffer may be filled again as soon as this returns.
    const own = new Uint8Array(bytes);
    const step = this.#packets ? Math.max(1, own.length) : MESSAGE_BYTES;
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
    return this.#ask('finalize');
  }

  clear(): Promise<void> {
    return this.#ask('clear');
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

  #ask(type: 'finalize' | 'clear'): Promise<void> {
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
      // Whoever gives tokens may be out of reach for the same reason as the edge.
      this.#retry();
      return;
    }
    if (this.#over) return;
    let socket: ClientSocket;
    try {
      socket = new this.#Socket(this.#address(), [PROTOCOL, TOKEN + token]);
    } catch {
      // An address that is none, or a token that cannot stand in a header: it will be the same next time.
      this.#fail(new StreamError('address_invalid', 'No connection can be made with this address and token.'));
      return;
    }
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#started = false;
    this.#seen = 0;
    this.#heardAt = this.#around.now();
    socket.onopen = () => this.#start(socket);
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#hear(data);
    };
    socket.onclose = ({ code }) => this.#lose(socket, code);
    socket.onerror = () => {};
    this.#watch(socket);
  }

  /** Throws when it is none. */
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
    this.#heardAt = this.#around.now();
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
        if (Number(message.position) > this.#backlog.start) this.#fruitless = 0;
        this.#resume = String(message.resume);
        this.#backlog.settle(Number(message.position));
        this.#wake();
        return;
      case 'answer':
        this.#answer(message.type === 'finalized' ? 'finalize' : 'clear', Number(message.id));
        return;
      case 'back':
        // The edge has not taken what came after: it is sent again when there is room.
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
    if (this.#attempt > 0) this.events.push({ type: 'resumed', position });
    this.#session = session;
    this.#expired = 0;
    this.#window = windowBytes;
    this.#attempt = 0;
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
    // A session that was under way and is refused again and again would be refused for ever.
    if (this.#started) this.#fruitless += 1;
    // Whoever gives tokens may have had an old one; one that is new and has expired, too, is of a clock that is wrong.
    const expired = reason === 'token_expired' && typeof this.#open.token === 'function';
    if (expired) this.#expired += 1;
    const again = expired ? this.#expired < MOST_FRUITLESS : passing.has(reason);
    const fatal = !again || this.#fruitless >= MOST_FRUITLESS;
    if (fatal) this.#fail(new StreamError(reason, message, request));
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
    this.#cancelPing = this.#around.after(PING_MS, () => {
      if (socket !== this.#socket) return;
      if (this.#around.now() - this.#heardAt > SILENCE_MS) {
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
    if (this.#started) this.#since = this.#around.now();
    this.#started = false;
    this.#retry();
  }

  #retry(): void {
    if (this.#over) return;
    this.#cancelPing();
    if (this.#around.now() - this.#since > (this.#open.patienceMs ?? 60_000)) {
      this.#fail(new StreamError('connection_lost', 'The edge could not be reached again.'));
      return;
    }
    this.#attempt += 1;
    this.events.push({ type: 'reconnecting', attempt: this.#attempt });
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.#attempt - 1), LONGEST_PAUSE_MS);
    this.#cancelPause = this.#around.after(pause * (0.5 + this.#around.random() / 2), () => void this.#connect());
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

/** Messages that are the client's own business. */
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
