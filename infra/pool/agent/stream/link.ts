import type WebSocket from 'ws';
import { limits } from '../../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import type { Opener, Sealer } from '../../../../shared/seal/records.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import type { Clock } from './clock.ts';

/** The agent's side of the socket of one stream: sealed records in order, both ways. */
export interface Link {
  /** Events leave in the order of the calls. Nothing leaves after a `final` or `refusal`, behind which the socket is closed. */
  send(event: LinkEvent): void;
  /** The edge does not read what it was sent. */
  congested(): boolean;
  /** Resolves when it does, or is gone. */
  flowing(): Promise<void>;
}

export interface LinkParts {
  readonly socket: WebSocket;
  readonly opener: Opener;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly keepaliveMs: number;
  /** One record at a time: the next one comes when this has resolved, at once when there is nothing to wait for. */
  readonly onRecord: (plaintext: Uint8Array, final: boolean) => Promise<void> | undefined;
  /** What came in is nothing the other side may send. */
  readonly onBroken: (refusal: Refusal) => void;
  /** The socket is gone. */
  readonly onGone: () => void;
  readonly onBug: (error: unknown) => void;
}

const NORMAL = 1000;
const encoder = new TextEncoder();

export function openLink(parts: LinkParts): Link {
  const { socket, opener, sealer, clock } = parts;
  let queue: Uint8Array[] = [];
  let queued = 0;
  let reading = false;
  let paused = false;
  let ended = false;
  let gone = false;
  /** Bytes that are sealed or about to be, and not handed to the socket. */
  let unsealed = 0;
  let last: Promise<void> = Promise.resolve();
  let onFlow: (() => void)[] = [];
  /** Beats since the last sign of the edge. Counted, since a clock would blame it for a pause of this process. */
  let silent = 0;
  let sentAt = clock.now();
  let stopBeat = () => {};

  const congested = () => !gone && socket.bufferedAmount + unsealed > limits.streamUnsentBytes.value;

  function tellFlow() {
    if (congested()) return;
    const told = onFlow;
    onFlow = [];
    for (const tell of told) tell();
  }

  async function read(): Promise<void> {
    if (reading) return;
    reading = true;
    for (let chunk = queue.shift(); chunk && !gone; chunk = queue.shift()) {
      const opened = await opener.openWhole(chunk);
      if (gone) return;
      if (!opened.ok) return parts.onBroken(opened.refusal);
      for (const { plaintext, final } of opened.value) {
        const taken = parts.onRecord(plaintext, final);
        if (taken) await taken;
        if (gone) return;
      }
      queued -= chunk.length;
      if (paused && queued < limits.streamQueueBytes.value / 2) {
        paused = false;
        silent = 0;
        socket.resume();
      }
    }
    reading = false;
  }

  async function write(bytes: Uint8Array, final: boolean): Promise<void> {
    const record = await sealer.seal(bytes, final);
    unsealed -= bytes.length;
    if (socket.readyState !== socket.OPEN) return tellFlow();
    sentAt = clock.now();
    socket.send(record, { binary: true, compress: false }, () => {
      tellFlow();
      if (final) socket.close(NORMAL);
    });
  }

  function send(event: LinkEvent) {
    if (ended || gone) return;
    const final = event.type === 'final' || event.type === 'refusal';
    ended = final;
    const bytes = encoder.encode(JSON.stringify(event));
    unsealed += bytes.length;
    last = last.then(() => write(bytes, final)).catch(parts.onBug);
  }

  /** Keepalives show the edge that we are there, pings show us that it is. */
  function beat() {
    stopBeat = clock.after(parts.keepaliveMs / 2, () => {
      if (gone || ended) return;
      // A socket that is not read tells nothing.
      if (!paused && silent * (parts.keepaliveMs / 2) > limits.answerSilenceMs.value) return socket.terminate();
      silent++;
      if (clock.now() - sentAt >= parts.keepaliveMs / 2 && !congested()) send({ type: 'keepalive' });
      // Whoever sends shows that it is there.
      if (silent > 1 && socket.readyState === socket.OPEN) socket.ping();
      beat();
    });
  }

  socket.on('message', (data: Buffer, isBinary: boolean) => {
    silent = 0;
    if (ended || gone) return;
    if (!isBinary) return parts.onBroken(refuse('seal_broken', undefined, 'a text message'));
    queue.push(data);
    queued += data.length;
    if (!paused && queued > limits.streamQueueBytes.value) {
      paused = true;
      socket.pause();
    }
    read().catch(parts.onBug);
  });
  socket.on('pong', () => {
    silent = 0;
  });
  // What is wrong with a peer's frames ends its socket, and nothing else.
  socket.on('error', () => {});
  socket.on('close', () => {
    gone = true;
    queue = [];
    stopBeat();
    tellFlow();
    parts.onGone();
  });
  beat();

  return {
    send,
    congested,
    flowing() {
      if (!congested()) return Promise.resolve();
      return new Promise((resolve) => onFlow.push(resolve));
    },
  };
}
