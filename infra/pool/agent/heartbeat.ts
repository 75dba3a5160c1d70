import WebSocket from 'ws';
import { backOffMs } from '../../../shared/back-off.ts';
import { limits } from '../../../shared/limits.ts';
import type { PoolDescription } from '../../../shared/pool/description.ts';
import { type AgentMessage, type Load, rosterMessage } from '../../../shared/pool/heartbeat.ts';
import type { Keys } from './keys.ts';
import type { Log } from './log.ts';
import type { Outbox } from './record.ts';
import type { ReleaseMapStore } from './release-map.ts';

export interface HeartbeatOptions {
  /** Base URL of the edge. */
  readonly edgeUrl: string;
  /** Reads the pool token at each connection, so that it can be renewed underneath. */
  readonly token: () => string;
  readonly keys: Keys;
  readonly describe: () => PoolDescription;
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
  backOffMs(attempt, { firstMs: limits.reconnectMs.value, maxMs: limits.reconnectMaxMs.value }, random);

const describeClose = (code: number, reason: Buffer): string =>
  reason.length > 0 ? `close code ${code}: ${reason}` : `close code ${code}`;

type Unsigned = AgentMessage extends infer M ? (M extends AgentMessage ? Omit<M, 'v' | 'boot' | 'seq'> : never) : never;

/** Refusals of a hello that a new attestation answers. */
const staleReasons: ReadonlySet<string> = new Set(['attestation_stale', 'attestation_invalid']);

/** The socket to the roster: hello, a report each second, audit events until they are acknowledged. */
export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { keys, log, outbox, random = Math.random, now = Date.now } = options;
  const url = `${options.edgeUrl.replace(/^http/, 'ws')}/v1/pools/heartbeat`;
  let socket: WebSocket | undefined;
  let seq = 0;
  let attempts = 0;
  /** The roster wants a newer attestation on the next connection. */
  let stale = false;
  /** Stale hellos since the last connection that lasted. Two processes of one name pause longer with each. */
  let staleHellos = 0;
  let stopped = false;
  /** Why there is no connection, as the log says it: once, not at each attempt. */
  let told = '';
  /** Whether there was a connection ever. Before it, an edge that is not there yet is no fault. */
  let met = false;
  /** Status of an edge that is there and wants no socket. */
  let answered = '';
  let beat: NodeJS.Timeout | undefined;
  let again: NodeJS.Timeout | undefined;
  /** Signing takes a turn of the event loop, so messages queue up behind each other to keep their numbers in order. */
  let sending: Promise<void> = Promise.resolve();
  let announced = '';
  let awaited: { seq: number; ids: string[] } | undefined;

  function send(to: WebSocket, message: Unsigned): Promise<void> {
    const own = seq++;
    if (message.type === 'audit') awaited = { seq: own, ids: message.events.map((event) => String(event.id)) };
    sending = sending.then(async () => {
      const jws = await keys.sign({ v: 1, boot: keys.boot, seq: own, ...message });
      if (to.readyState === WebSocket.OPEN) to.send(jws);
    });
    return sending;
  }

  const modelsText = () => JSON.stringify(options.describe().models);

  function hello(to: WebSocket) {
    announced = modelsText();
    void send(to, { type: 'hello', attestation: keys.current().token, description: options.describe(), at: now() });
  }

  function report(to: WebSocket): Promise<void> {
    const { models } = options.describe();
    const changed = modelsText() !== announced;
    announced = modelsText();
    const release = options.release?.generation();
    const news = { ...(changed && { models }), ...(release !== undefined && { release }) };
    return send(to, { type: 'report', load: options.load(), at: now(), ...news });
  }

  function sendEvents(to: WebSocket) {
    if (awaited) return;
    const events = outbox.batch();
    if (events.length > 0) void send(to, { type: 'audit', events });
  }

  function onMessage(from: WebSocket, data: string) {
    const parsed = rosterMessage.safeParse(JSON.parse(data));
    if (!parsed.success) return;
    const message = parsed.data;
    if (message.type === 'welcome') {
      attempts = 0;
      told = '';
      met = true;
      log('connected');
      clearInterval(beat);
      void report(from);
      sendEvents(from);
      beat = setInterval(() => tick(from), message.intervalMs);
    } else if (message.type === 'ack') {
      if (awaited?.seq !== message.seq) return;
      outbox.acknowledge(awaited.ids);
      awaited = undefined;
      sendEvents(from);
    } else if (message.type === 'release') {
      // Told at once that it is known: a roll back is over when the last agent says so.
      void options.release?.take(message.release).then(() => report(from));
    } else if (message.type === 'drain') {
      log('drain');
      options.onDrain();
    } else {
      const { reason, detail } = message;
      stale = staleReasons.has(reason);
      log('disconnected', { reason, ...(detail !== undefined && { detail }) });
    }
  }

  let heardAt = 0;
  let beats = 0;
  function tick(to: WebSocket) {
    beats++;
    if (beats * limits.heartbeatMs.value > limits.reconnectMaxMs.value) staleHellos = 0;
    // A socket whose other end vanished without a word stays open for minutes; the pong tells.
    if ((beats - heardAt) * limits.heartbeatMs.value > limits.heartbeatGoneMs.value) return to.terminate();
    to.ping();
    void report(to);
    sendEvents(to);
  }

  function connect() {
    stale = false;
    let token: string;
    try {
      token = options.token();
    } catch {
      log('disconnected', { detail: 'the pool token cannot be read' });
      return retry();
    }
    const next = new WebSocket(url, {
      headers: { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
      handshakeTimeout: limits.reconnectMaxMs.value,
      maxPayload: limits.rosterMessageBytes.value,
    });
    socket = next;
    next.on('open', () => {
      beats = 0;
      heardAt = 0;
      answered = '';
      hello(next);
    });
    next.on('pong', () => {
      heardAt = beats;
    });
    next.on('message', (data) => {
      heardAt = beats;
      try {
        onMessage(next, String(data));
      } catch {
        next.close(4400);
      }
    });
    next.on('error', (error: NodeJS.ErrnoException) => {
      // Nobody listens: the edge is starting beside us. It is no overload that patience would help.
      if (error.code === 'ECONNREFUSED') attempts = Math.min(attempts, 1);
      answered = /^Unexpected server response: (\d{3})$/.exec(error.message)?.[1] ?? '';
    });
    next.on('close', (code, reason) => {
      if (socket !== next) return;
      clearInterval(beat);
      awaited = undefined;
      // A wait is said once; that the edge is there and refuses is a fault, whenever it turns up.
      const why = answered
        ? `the edge answers ${answered}`
        : met
          ? describeClose(code, reason)
          : 'waiting for the edge';
      if (told !== why) log(answered || met ? 'disconnected' : 'waiting', { detail: why });
      told = why;
      retry();
    });
  }

  function retry() {
    socket = undefined;
    if (stopped) return;
    if (stale) {
      options.onStale(staleHellos === 0 ? 0 : reconnectPause(staleHellos - 1, random()));
      staleHellos++;
      return;
    }
    again = setTimeout(connect, reconnectPause(attempts++, random()));
  }

  function leave() {
    const old = socket;
    socket = undefined;
    clearInterval(beat);
    clearTimeout(again);
    awaited = undefined;
    old?.close(1000);
    return old;
  }

  return {
    start: connect,
    renew() {
      if (stopped) return;
      leave();
      connect();
    },
    async stop() {
      stopped = true;
      if (socket?.readyState === WebSocket.OPEN) await report(socket);
      const old = leave();
      // The closing handshake may wait for a roster that is gone.
      if (old) setTimeout(() => old.terminate(), limits.reconnectCloseMs.value).unref();
    },
  };
}
