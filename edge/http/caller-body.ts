import { MiB } from '../../shared/bytes.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { SEAL_SEGMENT_BYTES } from '../../shared/seal/limits.ts';
import { BODY_BYTES, BUFFERED_BODY_BYTES } from '../../shared/speech/limits.ts';
import { late, type Runtime, within } from '../clock.ts';
import { BODY_IDLE_MS } from '../limits.ts';
import { BODY_READ_BYTES, discardSource, openSource, type Source } from './body-source.ts';
import { type BodyOwner, BUFFERED_BYTES_IN_FLIGHT, type BufferedBody, bufferedInFlight } from './buffered-bytes.ts';

/**
 * Bytes of a form that the edge searches for its model: a recording of four minutes in front of it. Four such forms
 * fill the buffer of an isolate.
 */
export const HINTS_BYTES = 8 * MiB;
/** Longest wait for a form to name its model: HINTS_BYTES over 1.5 Mbit/s; slower clients can use a header. */
export const HINTS_MS = 45_000;
/**
 * One read of a body that arrives at over 1.3 MB/s: 160 reads of 64 KiB cost 10 MB half again as much CPU as
 * ten.
 */
export const BODY_LARGE_READ_BYTES = MiB;
/**
 * Time for a short body to arrive whole before it is sent on as a stream; too short for a caller to notice.
 */
const BODY_GATHER_MS = 50;
/** Longest wait for an agent to keep a request whose first `BUFFERED_BODY_BYTES` it has: it detects in less. */
export const BODY_HOLD_MS = 3_000;

/** Refusals of callers whose remaining bytes are not worth reading. */
const slow: ReadonlySet<string> = new Set(['client_slow', 'hints_late']);

export interface BodyOptions extends BodyOwner {
  /** Bytes of the body, if the caller names them. */
  readonly length?: number | undefined;
}

/**
 * A caller's body on its way to an agent. It is read on demand, counted, and refused when it stands still. While its
 * first `BUFFERED_BODY_BYTES` are buffered it can be sent again from its first byte. All bodies of an isolate share
 * `BUFFERED_BYTES_IN_FLIGHT` by class and tenant: a body without a share is sent on but cannot be sent again.
 */
export class CallerBody {
  /** Bytes that have arrived. */
  received = 0;
  /** Time at which the last byte arrived, ms since 1970. */
  endedAt: number | undefined;
  /** Settles with the refusal when the body cannot become complete; stays pending otherwise. */
  readonly failed: Promise<Refusal>;
  readonly #source: Source | undefined;
  readonly #length: number;
  readonly #runtime: Runtime;
  /** Chunks in order of arrival; `undefined` once a chunk was sent and cannot be needed again. */
  readonly #chunks: (Uint8Array | undefined)[] = [];
  /** Share of the isolate's buffer. */
  readonly #share: BufferedBody;
  /** Settles when the body is cancelled or loses its share. */
  readonly #stopped: Promise<void>;
  #stop: () => void = () => {};
  #fail: (refusal: Refusal) => void = () => {};
  #refusal: Refusal | undefined;
  /** Whether the share was refused or given to another body. */
  #isCrowded = false;
  /** Settles when the body may be read beyond what can be sent again. */
  #hold: { readonly ended: Promise<void>; readonly end: () => void } | undefined;
  /** Whether the last read brought a segment per `BODY_GATHER_MS` or more. */
  #isFast = false;
  /** Chunks that were released. */
  #released = 0;
  /** Chunks that the current agent was given. */
  #sent = 0;
  #ended = false;
  #cancelled = false;
  #reading: Promise<void> | undefined;
  /** Number of the stream that may read; an older one belongs to an agent that was given up. */
  #stream = 0;

  constructor(
    from: ReadableStream<Uint8Array> | null,
    runtime: Runtime,
    { class: name, tenant, length }: BodyOptions = { class: 'default', tenant: '' },
  ) {
    this.#length = length ?? Number.POSITIVE_INFINITY;
    this.#source = from ? openSource(from) : undefined;
    this.#runtime = runtime;
    this.#ended = !from || length === 0;
    const releasable = () => this.#sent >= this.#chunks.length || this.#stream === 0;
    this.#share = { class: name, tenant, bytes: 0, since: 0, releasable, release: () => this.#loseShare() };
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
  }

  /** Whether the body can be sent again from its first byte. */
  get replayable(): boolean {
    return this.received <= BUFFERED_BODY_BYTES && !this.#isCrowded;
  }

  /**
   * Reads no further than can be sent again, until `endHold`, or for BODY_HOLD_MS once that was reached: an agent may
   * still move the request to another model.
   */
  hold(): void {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#hold = { ended, end };
  }

  /** Ends a hold. */
  endHold(): void {
    this.#hold?.end();
    this.#hold = undefined;
  }

  /** Whether the caller's connection broke while the body was arriving. */
  get isCut(): boolean {
    return this.#refusal === cutOff;
  }

  /** Whether reading is over, and with it everything that can fail. */
  get ended(): boolean {
    return this.#ended;
  }

  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /**
   * Yields the first `most` bytes as they arrive, and no byte behind them, however they are cut. Ends early, with
   * a `refusal`, when the body fails, takes longer than `HINTS_MS`, or has no share of the buffer.
   */
  async *prefix(most: number = BUFFERED_BODY_BYTES): AsyncGenerator<Uint8Array> {
    const alarm = this.#runtime.after(HINTS_MS);
    let left = most;
    try {
      for (let index = 0; ; index += 1) {
        // At the bound it still matters whether anything follows: then the body cannot be sent again.
        while (index >= this.#chunks.length && !this.#ended && this.received <= most && !this.#isCrowded) {
          const step = await Promise.race([this.#more(), alarm.rings]);
          if (step === late) this.#break(refuse('hints_late', { limit: HINTS_MS / 1_000 }));
        }
        if (this.#isCrowded) this.#break(refuse('edge_busy'));
        const chunk = this.#chunks[index];
        if (this.#refusal || !chunk || left <= 0) return;
        yield chunk.subarray(0, left);
        left -= chunk.byteLength;
      }
    } finally {
      alarm.cancel();
    }
  }

  /**
   * Opens the body from its first byte, for one agent, while it is `replayable` or was not opened before. An earlier stream ends without a further
   * byte. Cancelling a stream leaves the body as it is.
   */
  open(): ReadableStream<Uint8Array> {
    this.#stream += 1;
    const own = this.#stream;
    this.#sent = 0;
    let sent = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (sent >= this.#chunks.length && !this.#ended && own === this.#stream) await this.#more();
          if (own !== this.#stream) return;
          const chunk = this.#chunks[sent];
          if (chunk) {
            sent += 1;
            this.#sent = sent;
            controller.enqueue(chunk);
            if (!this.replayable) this.#release(sent);
          } else if (this.#refusal || this.#cancelled) {
            // An error and no end: a body that was cut must not look complete to the agent.
            controller.error(new Error(this.#refusal?.reason ?? 'cancelled'));
          } else {
            controller.close();
          }
        },
        cancel: () => {
          if (own === this.#stream) this.#stream += 1;
        },
      },
      { highWaterMark: 0 },
    );
  }

  /**
   * Returns all chunks of a short body for one agent, if its length is known and it arrives within `BODY_GATHER_MS`:
   * sealed and sent in one piece it costs least. An earlier stream ends without a further byte.
   */
  async gather(): Promise<readonly Uint8Array[] | undefined> {
    if (!this.#ended && this.#isShort) await within(this.#readAll(), BODY_GATHER_MS, this.#runtime);
    const whole = this.whole();
    if (whole) {
      this.#stream += 1;
      this.#sent = this.#chunks.length;
    }
    return whole;
  }

  /** Returns all chunks of a body that has arrived and is still buffered. */
  whole(): readonly Uint8Array[] | undefined {
    if (!this.#ended || this.#refusal || this.#cancelled || !this.replayable) return undefined;
    return this.#chunks.filter((chunk) => chunk !== undefined);
  }

  /** Ends the body: open streams break off. `discard` reads what still arrives. */
  cancel(): void {
    this.endHold();
    if (!this.#ended) this.#cancelled = true;
    this.#ended = true;
    this.#chunks.length = 0;
    bufferedInFlight.remove(this.#share, this.#share.bytes);
    this.#stop();
  }

  /** Reads what still arrives and keeps nothing. */
  async discard(): Promise<void> {
    this.cancel();
    if (this.#refusal && slow.has(this.#refusal.reason)) return this.#source?.cancel();
    await this.#reading;
    if (this.#source) await discardSource(this.#source, this.#runtime);
  }

  get #isShort(): boolean {
    return this.#length <= BUFFERED_BODY_BYTES;
  }

  async #readAll(): Promise<void> {
    while (!this.#ended && this.replayable) await this.#more();
  }

  /** A more entitled body takes the share: a body that an agent has is buffered no more, any other is refused. */
  #loseShare(): void {
    this.#isCrowded = true;
    if (this.#stream > 0) {
      this.#release(this.#sent);
      return;
    }
    this.#break(refuse('edge_busy'));
    this.#release(this.#chunks.length);
    this.#stop();
  }

  /** Releases chunks that were sent and cannot be needed again. */
  #release(sent: number): void {
    for (; this.#released < sent; this.#released += 1) {
      bufferedInFlight.remove(this.#share, this.#chunks[this.#released]?.byteLength ?? 0);
      this.#chunks[this.#released] = undefined;
    }
  }

  /** Waits for the next chunk, the end, a failure or `cancel`. Two callers wait for the same read. */
  #more(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return Promise.race([this.#reading, this.#stopped]);
  }

  async #read(): Promise<void> {
    const room = await this.#room();
    if (this.#ended || !this.#source) return;
    const began = this.#runtime.now();
    const isLarge = this.#isFast && hasLargeRead();
    const left = Math.min(room, this.#length - this.received);
    const most = Math.min(isLarge ? BODY_LARGE_READ_BYTES : SEAL_SEGMENT_BYTES, left);
    const least = isLarge || this.#isShort ? most : Math.min(BODY_READ_BYTES, most);
    if (isLarge) bufferedInFlight.add(this.#share, most, began);
    let step: Uint8Array | undefined | typeof late;
    try {
      step = await within(this.#source.read(least, most), BODY_IDLE_MS, this.#runtime);
    } catch {
      return this.#break(cutOff);
    } finally {
      if (isLarge) bufferedInFlight.remove(this.#share, most);
    }
    if (step === late) return this.#break(tooSlow());
    const now = this.#runtime.now();
    if (!step) return this.#end(now);
    const pace = step.byteLength * BODY_GATHER_MS;
    this.#isFast = step.byteLength >= SEAL_SEGMENT_BYTES && pace >= (now - began) * SEAL_SEGMENT_BYTES;
    this.#take(step, now);
    if (this.received >= this.#length) this.#end(now);
  }

  /** Returns the most bytes of a read: none crosses the end of what can be sent again, where a hold waits. */
  async #room(): Promise<number> {
    const room = BUFFERED_BODY_BYTES - this.received;
    if (room > 0) return room;
    if (this.#hold && this.replayable) await within(this.#hold.ended, BODY_HOLD_MS, this.#runtime);
    this.endHold();
    return Number.POSITIVE_INFINITY;
  }

  #end(now: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.endedAt = now;
  }

  #take(step: Uint8Array, now: number): void {
    this.received += step.byteLength;
    if (this.received > BODY_BYTES) this.#break(refuse('body_too_large', { limit: BODY_BYTES }));
    // After `cancel` no chunk is buffered.
    if (this.#ended) return;
    this.#chunks.push(step);
    if (!bufferedInFlight.add(this.#share, step.byteLength, now)) this.#isCrowded = true;
  }

  #break(refusal: Refusal): void {
    this.#refusal ??= refusal;
    this.#ended = true;
    this.#fail(this.#refusal);
  }
}

/** Large reads take at most half of what bodies may hold, so that many fast uploads fall back to small buffers. */
const hasLargeRead = (): boolean => bufferedInFlight.total + BODY_LARGE_READ_BYTES <= BUFFERED_BYTES_IN_FLIGHT / 2;

const tooSlow = () => refuse('client_slow', { limit: BODY_IDLE_MS / 1_000 });
const cutOff = refuse('form_invalid', undefined, 'the connection broke while the body was arriving');
