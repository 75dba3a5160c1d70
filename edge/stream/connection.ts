import { limits } from '../../shared/limits.ts';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { audioBudget } from './audio-budget.ts';
import type { ClientStep, Ending, LiveDialect, Outgoing, SessionEvent } from './dialect.ts';
import type { Handover } from './handover.ts';

export interface Owner {
  step(connection: Connection, step: ClientStep): void;
  /** The client is away. `deliberate`: it closed the connection normally, and does not resume. */
  dropped(connection: Connection, deliberate: boolean): void;
  /** A bug, in the dialect or behind it. */
  broke(connection: Connection, error: unknown): void;
  /** The connection has sent its close frame and waits for the client's. */
  closing(connection: Connection): void;
  /** The close event of its socket, whichever side began. */
  closed(connection: Connection): void;
}

/** Normal closure, and a close frame without a code as browsers send it (RFC 6455 §7.4.1). */
const NORMAL = 1000;
const NO_STATUS = 1005;
const MORE_SEEN = 'seen is at most the number of messages that were sent';

/** One socket of a client, and the dialect spoken on it. */
export class Connection {
  readonly handover: Handover;
  readonly dialect: LiveDialect;
  readonly #socket: RuntimeSocket;
  readonly #owner: Owner;
  readonly #now: () => number;
  #over = false;
  #heard: (() => void) | undefined;
  /** Sizes of the messages that a client that counts has not said to have seen, and how many it has. */
  readonly #unread: number[] = [];
  #unreadBytes = 0;
  #seen = 0;
  #counts = false;
  /** Bytes of replies, and of what was asked, beyond those of the audio that came: that much can be known of any client. */
  #replied = 0;
  /** Bytes of what was told, and the time of the session that it is about, seconds; of clients that do not count. */
  #told = 0;
  #from = Number.POSITIVE_INFINITY;
  #until = 0;
  /** When the client was last heard, ms since 1970. */
  heardAt: number;

  constructor(socket: RuntimeSocket, dialect: LiveDialect, handover: Handover, owner: Owner, now: () => number) {
    this.#socket = socket;
    this.dialect = dialect;
    this.handover = handover;
    this.#owner = owner;
    this.#now = now;
    this.heardAt = now();
  }

  /** Begins to listen, and says the first frames. */
  open(session: string, expires: number): void {
    const socket = this.#socket;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', ({ code }) => {
      // The runtime does not answer a closing handshake by itself.
      this.#shut(NORMAL, '');
      // The client answered the edge's close frame, so it has read the frames before it.
      if (code === NORMAL) this.#heard?.();
      this.#drop(code === NORMAL || (code === NO_STATUS && this.dialect.endsByClosing === true));
      this.#owner.closed(this);
    });
    socket.addEventListener('error', () => {
      this.#drop(false);
      this.#owner.closed(this);
    });
    socket.accept();
    const now = this.#now();
    this.#guard(() => {
      const { request } = this.handover;
      this.#send(this.dialect.open({ id: session, request, now, expires }));
      this.#take(this.dialect.begin?.(now) ?? []);
    });
  }

  /** How long the client may say nothing, ms: what its dialect allows, or its token if that is less. */
  get idleMs(): number {
    const { idleSeconds = Number.POSITIVE_INFINITY } = this.handover.claims;
    return Math.min(this.dialect.idleMs ?? limits.streamIdleMs.value, idleSeconds * 1_000);
  }

  say(event: SessionEvent): void {
    if (this.#over || !this.#mayTell(event)) return;
    this.#guard(() => this.#tell(this.dialect.say(event, this.#now())));
  }

  /** Reports whether to send an event. A client that may be too slow gets no interims. */
  #mayTell(event: SessionEvent): boolean {
    const [from, until] = spanOf(event);
    this.#from = Math.min(this.#from, from);
    this.#until = Math.max(this.#until, until);
    return event.type !== 'interim' || this.#counts || this.#told <= this.#tellable();
  }

  /** Bytes that what was heard since the connection began may take: more than speech ever does. */
  #tellable(): number {
    const seconds = Math.max(0, this.#until - this.#from);
    return limits.streamUnreadBytes.value + seconds * limits.streamTellBytes.value;
  }

  #tell(frames: readonly Outgoing[]): void {
    for (const { length } of frames) this.#told += length;
    this.#send(frames);
    if (this.#counts || this.#over || this.#told <= 2 * this.#tellable()) return;
    this.#owner.step(this, { type: 'close', refusal: refuse('reader_slow') });
  }

  /** All before `time` was said. */
  settle(time: number): void {
    if (!this.#over) this.#guard(() => this.#tell(this.dialect.settle?.(time, this.#now()) ?? []));
  }

  /** Sends the frames of a request that an agent serves. */
  grant(frames: readonly Outgoing[]): void {
    if (!this.#over) this.#guard(() => this.#reply(frames));
  }

  /** Warns that no agent serves the request; the client may send another one. */
  warn(refusal: Refusal): void {
    if (!this.#over) this.#guard(() => this.#reply(this.dialect.warn?.(refusal, this.#now()) ?? []));
  }

  /** Says the last frames and closes; `heard` is called when the client has read them. The owner hears no more of it. */
  end(ending: Ending, heard?: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#heard = heard;
    let last = { frames: [] as readonly Outgoing[], code: refusals.internal.close as number, reason: 'internal' };
    try {
      last = this.dialect.close(ending, this.#now());
      this.#send(last.frames);
    } catch (error) {
      this.#owner.broke(this, error);
    }
    this.#shut(last.code, last.reason);
    this.#owner.closing(this);
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#over) return;
    const now = this.#now();
    this.heardAt = now;
    this.#guard(() => {
      const message = typeof data === 'string' ? data : new Uint8Array(data);
      const most = limits.streamMessageBytes.value;
      const close = (refusal: Refusal) => this.#owner.step(this, { type: 'close', refusal });
      if (message.length > most) close(refuse('message_too_large', { limit: most }));
      else if (!audioBudget.mayRead(message.length, typeof message === 'string' ? 'text' : 'binary')) {
        close(refuse('backlog_full'));
      } else this.#hear(message, this.dialect.hear(message, now));
    });
    // The dialect has copied what it needs. Left to a collector this memory would stay until a full collection: the
    // runtime holds on to the event it came with.
    if (typeof data !== 'string') data.transfer(0);
  }

  /** Audio earns what it is, and costs nothing in text either, but for what is written around it; everything else costs. */
  #hear(message: string | Uint8Array, steps: readonly ClientStep[]): void {
    const audio = steps.reduce((sum, step) => sum + (step.type === 'audio' ? step.audio.length : 0), 0);
    const free = limits.streamAskBytes.value;
    // Base64 is four thirds of it, and some escape each slash of that.
    const beside = typeof message === 'string' ? message.length - (audio > 0 ? 2 * audio + free : 0) : 0;
    this.#replied = Math.max(0, this.#replied - audio);
    if (this.#charge(audio > 0 ? Math.max(0, beside) : Math.max(free, beside))) this.#take(steps);
  }

  #take(steps: readonly ClientStep[]): void {
    for (const step of steps) {
      if (this.#over) return;
      if (step.type === 'reply') this.#reply(step.frames);
      else if (step.type === 'alive' && step.seen !== undefined && !this.#see(step.seen)) {
        this.#owner.step(this, { type: 'close', refusal: refuse('frame_invalid', { rule: MORE_SEEN }) });
      } else {
        this.#owner.step(this, step);
      }
    }
  }

  #reply(frames: readonly Outgoing[]): void {
    const bytes = frames.reduce((sum, { length }) => sum + length, 0);
    if (this.#charge(bytes)) this.#send(frames);
  }

  /**
   * Bounds the replies that the runtime buffers for a client that only sends requests. The count that a client says to
   * have seen does not help: it can count without reading.
   */
  #charge(bytes: number): boolean {
    this.#replied += bytes;
    if (this.#replied <= limits.streamUnreadBytes.value) return true;
    this.#owner.step(this, { type: 'close', refusal: refuse('reader_slow') });
    return false;
  }

  #send(frames: readonly Outgoing[]): void {
    try {
      for (const frame of frames) this.#socket.send(frame);
    } catch {
      // The socket is closing; its own event tells.
    }
    if (this.dialect.acknowledges) for (const { length } of frames) this.#count(length);
  }

  /** The runtime keeps what a slow client does not read, and does not say how much: only the client can. */
  #count(length: number): void {
    this.#unread.push(length);
    this.#unreadBytes += length;
    if (this.#unreadBytes <= limits.streamUnreadBytes.value || this.#over) return;
    if (this.#counts) this.#owner.step(this, { type: 'close', refusal: refuse('reader_slow') });
    else this.#forget(this.#seen + 1);
  }

  /** False when it says to have seen more than there was. */
  #see(seen: number): boolean {
    this.#counts = true;
    const sent = this.#seen + this.#unread.length;
    this.#forget(seen);
    return seen <= sent;
  }

  #forget(seen: number): void {
    for (; this.#seen < seen && this.#unread.length > 0; this.#seen++) {
      this.#unreadBytes -= this.#unread.shift() ?? 0;
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#owner.broke(this, error);
    }
  }

  #drop(deliberate: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.dropped(this, deliberate);
  }

  #shut(code: number, reason: string): void {
    try {
      this.#socket.close(code, reason);
    } catch {
      // It is closed already.
    }
  }
}

/** The time that an event is about, seconds of the session. */
function spanOf(event: SessionEvent): [number, number] {
  if (event.type === 'interim' || event.type === 'segment') return [event.start, event.end];
  if (event.type === 'resumed') return [event.time, event.time];
  return [Number.POSITIVE_INFINITY, 0];
}
