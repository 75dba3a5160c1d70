import WebSocket from 'ws';
import { backOffMs } from '../../../../shared/back-off.ts';
import { KiB } from '../../../../shared/bytes.ts';
import type { AgentDescription } from '../../../../shared/pool/description.ts';
import { type AgentMessage, type Load, rosterMessage } from '../../../../shared/pool/heartbeat.ts';
import { HEARTBEAT_GONE_MS, HEARTBEAT_MS, RECONNECT_MAX_MS } from '../../../../shared/pool/limits.ts';
import { RECONNECT_MS } from '../settings/limits.ts';
import type { Log } from '../telemetry/log.ts';
import type { Keys } from './keys.ts';
import type { Outbox } from './record.ts';
import type { ReleaseMapStore } from './release-map.ts';

/** Longest closing handshake with a registry; a lost one would hold up the end of the process. */
const RECONNECT_CLOSE_MS = 200;
/** Message of the registry: a release map of RELEASE_BYTES, and its envelope. */
export const ROSTER_MESSAGE_BYTES = 228 * KiB;

export interface HeartbeatOptions {
  /** Base URL of the edge. */
  readonly edgeUrl: string;
  /** Reads the pool token at each connection, so that it can be renewed underneath. */
  readonly token: () => string;
  readonly keys: Keys;
  readonly describe: () => AgentDescription;
  readonly load: () => Load;
  readonly outbox: Outbox;
  readonly onDrain: () => void;
  /** Has the keys attested again and calls `renew`, after `pauseMs`. */
  readonly onStale: (pauseMs: number) => void;
  /** Absent: no release map is taken. */
  readonly release?: Pick<ReleaseMapStore, 'generation' | 'take'>;
  readonly log: Log;
  /** ms since 1970. */
  readonly now?: () => number;
  readonly random?: () => number;
}

export interface Heartbeat {
  start(): void;
  /** Says hello again, because the attestation has changed. */
  renew(): void;
  /** A last report, then the socket closes. */
  stop(): Promise<void>;
}

/** Returns the pause before the given attempt to reach the roster (0 for the first retry), ms. */
export const reconnectPause = (attempt: number, random: number): number =>
  backOffMs(attempt, { firstMs: RECONNECT_MS, maxMs: RECONNECT_MAX_MS }, random);

const describeClose = (code: number, reason: Buffer): string =>
  reason.length > 0 ? `close code ${code}: ${reason}` : `close code ${code}`;

type Unsigned = AgentMessage extends infer M ? (M extends AgentMessage ? Omit<M, 'v' | 'boot' | 'seq'> : never) : never;

/** Refusals of a hello that a new attestation answers. */
const staleReasons: ReadonlySet<string> = new Set(['attestation_stale', 'attestation_invalid']);

/** The socket to the roster: hello, a report each second, audit events until they are acknowledged. */
export class RosterHeartbeat implements Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #url: string;
  #socket: WebSocket | undefined;
  #seq = 0;
  #attempts = 0;
  /** The roster wants a newer attestation on the next connection. */
  #stale = false;
  /** Stale hellos since the last connection that lasted. Two processes of one name pause longer with each. */
  #staleHellos = 0;
  #stopped = false;
  /** Last cause of a missing connection in the log: it is logged once, not at each attempt. */
  #logged = '';
  /** Whether there was a connection ever. Before it, an edge that is not there yet is no fault. */
  #met = false;
  /** Status of an edge that is there and wants no socket. */
  #answered = '';
  #beat: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  /** Signing takes a turn of the event loop, so messages queue up behind each other to keep their numbers in order. */
  #sending: Promise<void> = Promise.resolve();
  #announced = '';
  #awaited: { seq: number; ids: string[] } | undefined;
  #answeredAt = 0;
  #beats = 0;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? Date.now;
    this.#url = `${options.edgeUrl.replace(/^http/, 'ws')}/v1/pools/heartbeat`;
  }

  start() {
    this.#connect();
  }

  readonly renew = () => {
    if (this.#stopped) return;
    this.#leave();
    this.#connect();
  };

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#socket?.readyState === WebSocket.OPEN) await this.#report(this.#socket);
    const old = this.#leave();
    // The closing handshake may wait for a roster that is gone.
    if (old) setTimeout(() => old.terminate(), RECONNECT_CLOSE_MS).unref();
  }

  #send(to: WebSocket, message: Unsigned): Promise<void> {
    const own = this.#seq++;
    if (message.type === 'audit') this.#awaited = { seq: own, ids: message.events.map((event) => String(event.id)) };
    this.#sending = this.#sending.then(async () => {
      const jws = await this.#options.keys.sign({ v: 1, boot: this.#options.keys.boot, seq: own, ...message });
      if (to.readyState === WebSocket.OPEN) to.send(jws);
    });
    return this.#sending;
  }

  #modelsText(): string {
    return JSON.stringify(this.#options.describe().models);
  }

  #hello(to: WebSocket) {
    this.#announced = this.#modelsText();
    void this.#send(to, {
      type: 'hello',
      attestation: this.#options.keys.current().token,
      description: this.#options.describe(),
      at: this.#now(),
    });
  }

  #report(to: WebSocket): Promise<void> {
    const { models } = this.#options.describe();
    const changed = this.#modelsText() !== this.#announced;
    this.#announced = this.#modelsText();
    const release = this.#options.release?.generation();
    const news = { ...(changed && { models }), ...(release !== undefined && { release }) };
    return this.#send(to, { type: 'report', load: this.#options.load(), at: this.#now(), ...news });
  }

  #sendEvents(to: WebSocket) {
    if (this.#awaited) return;
    const events = this.#options.outbox.batch();
    if (events.length > 0) void this.#send(to, { type: 'audit', events });
  }

  #onMessage(from: WebSocket, data: string) {
    const parsed = rosterMessage.safeParse(JSON.parse(data));
    if (!parsed.success) return;
    const message = parsed.data;
    if (message.type === 'welcome') {
      this.#attempts = 0;
      this.#logged = '';
      this.#met = true;
      this.#options.log('connected');
      clearInterval(this.#beat);
      void this.#report(from);
      this.#sendEvents(from);
      this.#beat = setInterval(() => this.#tick(from), message.intervalMs);
    } else if (message.type === 'ack') {
      if (this.#awaited?.seq !== message.seq) return;
      this.#options.outbox.acknowledge(this.#awaited.ids);
      this.#awaited = undefined;
      this.#sendEvents(from);
    } else if (message.type === 'release') {
      // Reports the new map at once: a roll back is over when the last agent has it.
      void this.#options.release?.take(message.release).then(() => this.#report(from));
    } else if (message.type === 'drain') {
      this.#options.log('drain');
      this.#options.onDrain();
    } else {
      const { reason, detail } = message;
      this.#stale = staleReasons.has(reason);
      this.#options.log('disconnected', { reason, ...(detail !== undefined && { detail }) });
    }
  }

  #tick(to: WebSocket) {
    this.#beats++;
    if (this.#beats * HEARTBEAT_MS > RECONNECT_MAX_MS) this.#staleHellos = 0;
    // A socket whose other end vanished without a word stays open for minutes; the pong tells.
    if ((this.#beats - this.#answeredAt) * HEARTBEAT_MS > HEARTBEAT_GONE_MS) return to.terminate();
    to.ping();
    void this.#report(to);
    this.#sendEvents(to);
  }

  #connect() {
    this.#stale = false;
    let token: string;
    try {
      token = this.#options.token();
    } catch {
      this.#options.log('disconnected', { detail: 'the pool token cannot be read' });
      return this.#retry();
    }
    const next = new WebSocket(this.#url, {
      headers: { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
      handshakeTimeout: RECONNECT_MAX_MS,
      maxPayload: ROSTER_MESSAGE_BYTES,
    });
    this.#socket = next;
    next.on('open', () => {
      this.#beats = 0;
      this.#answeredAt = 0;
      this.#answered = '';
      this.#hello(next);
    });
    next.on('pong', () => {
      this.#answeredAt = this.#beats;
    });
    next.on('message', (data) => {
      this.#answeredAt = this.#beats;
      try {
        this.#onMessage(next, String(data));
      } catch {
        next.close(4400);
      }
    });
    next.on('error', (error: NodeJS.ErrnoException) => {
      // The edge has not started yet. It is not overloaded, so a longer pause does not help.
      if (error.code === 'ECONNREFUSED') this.#attempts = Math.min(this.#attempts, 1);
      this.#answered = /^Unexpected server response: (\d{3})$/.exec(error.message)?.[1] ?? '';
    });
    next.on('close', (code, reason) => {
      if (this.#socket !== next) return;
      clearInterval(this.#beat);
      this.#awaited = undefined;
      // A wait is logged once; an edge that refuses is a fault at any time.
      const why = this.#answered
        ? `the edge answers ${this.#answered}`
        : this.#met
          ? describeClose(code, reason)
          : 'waiting for the edge';
      if (this.#logged !== why)
        this.#options.log(this.#answered || this.#met ? 'disconnected' : 'waiting', { detail: why });
      this.#logged = why;
      this.#retry();
    });
  }

  #retry() {
    this.#socket = undefined;
    if (this.#stopped) return;
    if (this.#stale) {
      this.#options.onStale(this.#staleHellos === 0 ? 0 : reconnectPause(this.#staleHellos - 1, this.#random()));
      this.#staleHellos++;
      return;
    }
    this.#again = setTimeout(() => this.#connect(), reconnectPause(this.#attempts++, this.#random()));
  }

  #leave() {
    const old = this.#socket;
    this.#socket = undefined;
    clearInterval(this.#beat);
    clearTimeout(this.#again);
    this.#awaited = undefined;
    old?.close(1000);
    return old;
  }
}
