import { MiB } from '../../shared/bytes.ts';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import type { ClientCommand, ClientFrame, LiveProtocol, Outcome, SessionEvent } from '../protocol/live-protocol.ts';
import { audioBudget } from './audio-budget.ts';
import type { ClosingSockets } from './closing-sockets.ts';
import type { Handover } from './handover.ts';
import { STREAM_IDLE_MS } from './limits.ts';
import { UnreadLimit } from './unread-limit.ts';

/**
 * One message of a client: ten minutes of 16 kHz sound are 18.3 MiB, and OpenAI takes 15. Base64 is in memory
 * three times while read.
 */
export const STREAM_MESSAGE_BYTES = 20 * MiB;

/** Receives what a client does on its socket. */
export interface SocketHandler {
  onCommand(command: ClientCommand, socket: ClientSocket): void;
  /** The socket is closed. `deliberate`: the client closed it normally, and does not resume. */
  onDisconnect(socket: ClientSocket, deliberate: boolean): void;
  /** A bug in the protocol adapter or behind it. */
  onError(error: unknown, socket: ClientSocket): void;
}

/** Normal closure, and a close frame without a code as browsers send it (RFC 6455 §7.4.1). */
const NORMAL = 1000;
const NO_STATUS = 1005;

/** One WebSocket of a client and the protocol adapter on it. */
export class ClientSocket {
  readonly handover: Handover;
  readonly protocol: LiveProtocol;
  /** The session's object until the client starts a session, then the session. */
  handler: SocketHandler;
  readonly #socket: RuntimeSocket;
  readonly #closing: Pick<ClosingSockets, 'add' | 'delete'>;
  readonly #now: () => number;
  readonly #unread = new UnreadLimit();
  #closed = false;
  #onRead: (() => void) | undefined;
  /** Time of the client's last message, epoch ms. */
  receivedAt: number;

  constructor({ socket, protocol, handover, handler, closing, now }: ClientSocketOptions) {
    this.#socket = socket;
    this.protocol = protocol;
    this.handover = handover;
    this.handler = handler;
    this.#closing = closing;
    this.#now = now;
    this.receivedAt = now();
  }

  /** Accepts the socket and sends the first frames. `expires`: latest end of the session, epoch ms. */
  open(session: string, expires: number): void {
    const socket = this.#socket;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', ({ code }) => {
      // The runtime does not answer a closing handshake by itself.
      this.#closeSocket(NORMAL, '');
      // The client answered the edge's close frame, so it has read the frames before it.
      if (code === NORMAL) this.#onRead?.();
      this.#disconnect(code === NORMAL || (code === NO_STATUS && this.protocol.endsByClosing === true));
      this.#closing.delete(this);
    });
    socket.addEventListener('error', () => {
      this.#disconnect(false);
      this.#closing.delete(this);
    });
    socket.accept();
    const now = this.#now();
    this.#guard(() => {
      const { request } = this.handover;
      this.#send(this.protocol.open({ id: session, request, now, expires }));
      this.#run(this.protocol.begin?.(now) ?? []);
    });
  }

  /** Longest silence of the client, ms: the protocol's, or the token's if that is less. */
  get idleMs(): number {
    const { idleSeconds = Number.POSITIVE_INFINITY } = this.handover.claims;
    return Math.min(this.protocol.idleMs ?? STREAM_IDLE_MS, idleSeconds * 1_000);
  }

  send(event: SessionEvent): void {
    if (this.#closed || !this.#unread.allows(event)) return;
    try {
      this.#sendEvent(this.protocol.render(event, this.#now()));
    } catch (error) {
      this.handler.onError(error, this);
    }
  }

  /** Notes that the client has every word before `time`. */
  commit(time: number): void {
    this.#guard(() => this.#sendEvent(this.protocol.commit?.(time, this.#now()) ?? []));
  }

  /** Sends the reply to a route that an agent serves. */
  acceptRoute(frames: readonly ClientFrame[]): void {
    this.#guard(() => this.#reply(frames));
  }

  /** Warns that no agent serves the route; the client may request another one. */
  rejectRoute(refusal: Refusal): void {
    this.#guard(() => this.#reply(this.protocol.rejectRoute?.(refusal, this.#now()) ?? []));
  }

  /** Sends the last frames and closes the socket. `onRead` is called when the client has read them. */
  close(outcome: Outcome, onRead?: () => void): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onRead = onRead;
    let last = { frames: [] as readonly ClientFrame[], code: refusals.internal.close as number, reason: 'internal' };
    try {
      last = this.protocol.close(outcome, this.#now());
      this.#send(last.frames);
    } catch (error) {
      this.handler.onError(error, this);
    }
    this.#closeSocket(last.code, last.reason);
    this.#closing.add(this, this.handover.claims);
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#closed) return;
    this.receivedAt = this.#now();
    try {
      this.#read(typeof data === 'string' ? data : new Uint8Array(data));
    } catch (error) {
      this.handler.onError(error, this);
    }
    // The protocol adapter has copied what it needs. The runtime holds on to the event, and its memory would stay until a
    // full collection.
    if (typeof data !== 'string') data.transfer(0);
  }

  #read(message: string | Uint8Array): void {
    const limit = STREAM_MESSAGE_BYTES;
    const isText = typeof message === 'string';
    if (message.length > limit) this.#refuse(refuse('message_too_large', { limit }));
    else if (!audioBudget.mayRead(message.length, isText ? 'text' : 'binary')) this.#refuse(refuse('backlog_full'));
    else {
      const commands = this.protocol.receive(message, this.receivedAt);
      let audio = 0;
      for (const command of commands) if (command.type === 'audio') audio += command.audio.length;
      if (this.#unread.addMessage(isText ? message.length : 0, audio)) this.#run(commands);
      else this.#refuse(refuse('reader_slow'));
    }
  }

  #run(commands: readonly ClientCommand[]): void {
    for (const command of commands) {
      if (this.#closed) return;
      if (command.type === 'reply') this.#reply(command.frames);
      else if (command.type === 'alive' && command.seen !== undefined && !this.#unread.acknowledge(command.seen)) {
        this.#refuse(refuse('frame_invalid', { rule: 'seen is at most the number of messages that were sent' }));
      } else this.handler.onCommand(command, this);
    }
  }

  #refuse(refusal: Refusal): void {
    if (!this.#closed) this.handler.onCommand({ type: 'close', refusal }, this);
  }

  #reply(frames: readonly ClientFrame[]): void {
    let bytes = 0;
    for (const { length } of frames) bytes += length;
    if (this.#unread.addReply(bytes)) this.#send(frames);
    else this.#refuse(refuse('reader_slow'));
  }

  #sendEvent(frames: readonly ClientFrame[]): void {
    this.#send(frames);
    if (!this.#unread.addEvent(frames)) this.#refuse(refuse('reader_slow'));
  }

  #send(frames: readonly ClientFrame[]): void {
    try {
      for (const frame of frames) this.#socket.send(frame);
    } catch {
      // The socket is closing, and its close event follows.
    }
    if (!this.protocol.acknowledges) return;
    for (const { length } of frames) if (!this.#unread.addFrame(length)) this.#refuse(refuse('reader_slow'));
  }

  #guard(work: () => void): void {
    if (this.#closed) return;
    try {
      work();
    } catch (error) {
      this.handler.onError(error, this);
    }
  }

  #disconnect(deliberate: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.handler.onDisconnect(this, deliberate);
  }

  #closeSocket(code: number, reason: string): void {
    try {
      this.#socket.close(code, reason);
    } catch {
      // The socket is closed.
    }
  }
}

export interface ClientSocketOptions {
  readonly socket: RuntimeSocket;
  readonly protocol: LiveProtocol;
  readonly handover: Handover;
  readonly handler: SocketHandler;
  readonly closing: Pick<ClosingSockets, 'add' | 'delete'>;
  readonly now: () => number;
}
