import { limits } from '../../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import type { Result } from '../../../../shared/result.ts';
import type { Opened, Opener, Sealer } from '../../../../shared/seal/records.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import type { Clock } from './clock.ts';
import type { StreamSocket } from './web-socket.ts';

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
  readonly socket: StreamSocket;
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
/** Most events fit; sealing them copies them. */
const eventRoom = new Uint8Array(16_384);

function encodeEvent(event: LinkEvent): Uint8Array {
  const text = JSON.stringify(event);
  // A character takes three bytes at most.
  if (3 * text.length > eventRoom.length) return encoder.encode(text);
  return eventRoom.subarray(0, encoder.encodeInto(text, eventRoom).written);
}

export function openLink(parts: LinkParts): Link {
  const { socket, opener, sealer, clock } = parts;
  let queue: Uint8Array[] = [];
  let queued = 0;
  let reading = false;
  let paused = false;
  let ended = false;
  let gone = false;
  /** Something came in that ends the link. */
  let broken = false;
  /** Bytes that are sealed or about to be, and not handed to the socket. */
  let unsealed = 0;
  let last: Promise<void> = Promise.resolve();
  /** Records that are sent when `last` has resolved. */
  let waiting = 0;
  let onFlow: (() => void)[] = [];
  /** Beats since the last sign of the edge. Counted, since a clock would blame it for a pause of this process. */
  let silent = 0;
  let sentAt = clock.now();
  let stopBeat = () => {};

  const congested = () => !gone && socket.unsent() + unsealed > limits.streamUnsentBytes.value;

  function tellFlow() {
    if (congested()) return;
    const told = onFlow;
    onFlow = [];
    for (const tell of told) tell();
  }

  /** Takes what came in, until something has to be waited for: a stream that keeps up makes no promises here. */
  function read(): void {
    reading = true;
    for (let chunk = queue.shift(); chunk && !gone; chunk = queue.shift()) {
      const { length } = chunk;
      const opened = opener.openWhole(chunk);
      const waits = opened instanceof Promise ? opened.then(takeOpened) : takeOpened(opened);
      if (broken) return;
      if (waits) {
        waits.then(() => goOn(length)).catch(parts.onBug);
        return;
      }
      settleQueue(length);
    }
    reading = false;
  }

  function goOn(length: number) {
    if (gone || broken) return;
    settleQueue(length);
    read();
  }

  function settleQueue(length: number) {
    queued -= length;
    if (!paused || queued >= limits.streamQueueBytes.value / 2) return;
    paused = false;
    silent = 0;
    socket.resume();
  }

  function takeOpened(opened: Result<readonly Opened[]>): Promise<void> | undefined {
    if (gone) return undefined;
    if (opened.ok) return takeRecords(opened.value, 0);
    broken = true;
    parts.onBroken(opened.refusal);
    return undefined;
  }

  function takeRecords(records: readonly Opened[], from: number): Promise<void> | undefined {
    for (let at = from; at < records.length && !gone; at++) {
      const { plaintext, final } = records[at] as Opened;
      const taken = parts.onRecord(plaintext, final);
      if (taken) return taken.then(() => takeRecords(records, at + 1));
    }
    return undefined;
  }

  function write(record: Uint8Array, length: number, final: boolean): void {
    unsealed -= length;
    if (!socket.isOpen()) {
      tellFlow();
      return;
    }
    sentAt = clock.now();
    socket.send(record, final ? sayFarewell : tellFlow);
  }

  function sayFarewell() {
    tellFlow();
    socket.close(NORMAL);
  }

  function send(event: LinkEvent) {
    if (ended || gone) return;
    const final = event.type === 'final' || event.type === 'refusal';
    ended = final;
    const bytes = encodeEvent(event);
    const { length } = bytes;
    unsealed += length;
    const record = sealer.seal(bytes, final);
    // The last one closes the socket, and whoever sends it has something to settle before.
    if (waiting === 0 && !final && !(record instanceof Promise)) {
      write(record, length, final);
      return;
    }
    waiting++;
    last = last
      .then(() => record)
      .then((sealed) => {
        waiting--;
        write(sealed, length, final);
      })
      .catch(parts.onBug);
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
      if (silent > 1 && socket.isOpen()) socket.ping();
      beat();
    });
  }

  function onMessage(data: Buffer, isBinary: boolean) {
    silent = 0;
    if (ended || gone) return;
    if (!isBinary) return parts.onBroken(refuse('seal_broken', undefined, 'a text message'));
    queue.push(data);
    queued += data.length;
    if (!paused && queued > limits.streamQueueBytes.value) {
      paused = true;
      socket.pause();
    }
    if (reading) return;
    try {
      read();
    } catch (error) {
      parts.onBug(error);
    }
  }

  socket.listen({
    message: onMessage,
    pong() {
      silent = 0;
    },
    closed() {
      gone = true;
      queue = [];
      stopBeat();
      tellFlow();
      parts.onGone();
    },
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
