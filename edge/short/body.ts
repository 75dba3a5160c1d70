import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { discardSource, openSource, type Source, type Upload } from '../body-source.ts';
import { callAfter, late, type Surroundings, within } from '../clock.ts';
import { type BodyOwner, type BufferedBody, heldInFlight } from './held.ts';

/** Refusals of callers whose remaining bytes are not worth waiting for. */
const slow: ReadonlySet<string> = new Set(['client_slow', 'hints_late']);

/**
 * The caller's body on its way to an agent. Read only when the agent's side wants more, counted, and watched for
 * standing still. Its first `limits.heldBodyBytes` are kept: while it is not longer, it can be sent a second time.
 * All bodies of an isolate share `limits.heldBytesInFlight` by class and tenant: beyond it none is looked through, and
 * those on their way are kept no more.
 *
 * One class though it is long: reading, looking and sending again go along the same list of chunks, and end for the same
 * reasons.
 */
export class CallerBody {
  /** Bytes that have arrived. */
  received = 0;
  /** When the last one had, ms since 1970; work after it is the agent's. */
  endedAt: number | undefined;
  readonly #source: Source | undefined;
  /** In its place, where the whole body is one piece: the runtime reads that best. */
  readonly #upload: Upload | undefined;
  /** What the caller said the body has, if it is one that may be held. */
  readonly #length: number | undefined;
  readonly #surroundings: Surroundings;
  /** Chunks in order of arrival; those that were sent and cannot be needed again are let go. */
  readonly #kept: (Uint8Array | undefined)[] = [];
  /** How much that is, as far as the isolate counts it. */
  readonly #buffered: BufferedBody;
  /** There is no room to keep what is sent. */
  #crowded = false;
  #fail: (refusal: Refusal) => void = () => {};
  #wake: () => void = () => {};
  #failed: Promise<Refusal> | undefined;
  #woken: Promise<void> | undefined;
  #refusal: Refusal | undefined;
  /** How many chunks were let go. */
  #gone = 0;
  /** How many chunks the current agent was given. */
  #handed = 0;
  #ended = false;
  #cancelled = false;
  #reading: Promise<void> | undefined;
  /** The stream that may read; an older one, of an agent that was given up, gets nothing any more. */
  #stream = 0;

  constructor(
    from: ReadableStream<Uint8Array> | Upload | null,
    surroundings: Surroundings,
    owner: BodyOwner = { class: 'default', tenant: '' },
  ) {
    const { length } = from && 'whole' in from ? from : { length: undefined };
    this.#length = length !== undefined && length <= limits.heldBodyBytes.value ? length : undefined;
    this.#upload = from && 'whole' in from && isShort(this.#length) ? from : undefined;
    this.#source = from && !this.#upload ? open(from, this.#length) : undefined;
    this.#surroundings = surroundings;
    const { class: name, tenant } = owner;
    const releasable = () => this.#handed >= this.#kept.length || this.#stream === 0;
    this.#buffered = { class: name, tenant, bytes: 0, since: 0, releasable, release: () => this.#release() };
    this.#ended = !this.#source && !this.#upload;
  }

  /** Every byte that arrived is still here. */
  get replayable(): boolean {
    return this.received <= limits.heldBodyBytes.value && !this.#crowded;
  }

  /** Nothing more is read, and nothing can fail any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Settles, with why, when the body will never be complete because of the caller; stays pending otherwise. */
  get failed(): Promise<Refusal> {
    this.#failed ??= new Promise((resolve) => {
      if (this.#refusal) resolve(this.#refusal);
      else this.#fail = resolve;
    });
    return this.#failed;
  }

  /** Settles when nobody wants the rest. */
  #cancelling(): Promise<void> {
    this.#woken ??= new Promise((resolve) => {
      this.#wake = resolve;
    });
    return this.#woken;
  }

  /** Why the body failed, if it did. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Reads all of an upload that is as short as a segment. `undefined` when it is not, or was read. */
  fill(): Promise<void> | undefined {
    if (!this.#upload || this.#ended) return undefined;
    this.#reading ??= this.#readAtOnce(this.#upload);
    return this.#reading;
  }

  #readAtOnce(upload: Upload): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        this.#reading = undefined;
        resolve();
      };
      const cancel = callAfter(
        limits.bodyIdleMs.value,
        () => {
          this.#break(tooSlow());
          over();
        },
        this.#surroundings,
      );
      upload.whole().then(
        (bytes) => {
          if (this.#refusal) return;
          cancel();
          const now = this.#surroundings.now();
          if (bytes.byteLength > 0) this.#take(new Uint8Array(bytes), now);
          this.#end(now);
          over();
        },
        () => {
          cancel();
          this.#break(cutOff());
          over();
        },
      );
    });
  }

  /** The same as `hold` for a body that is here. */
  lookAt(look: (chunk: Uint8Array) => boolean): boolean {
    if (this.#crowded) this.#break(refuse('edge_busy'));
    let left = limits.heldBodyBytes.value;
    for (const chunk of this.#kept) {
      if (this.#refusal || !chunk || left <= 0 || !look(chunk.subarray(0, left))) break;
      left -= chunk.byteLength;
    }
    return this.#refusal === undefined;
  }

  /**
   * Reads on while `look` wants more, and shows it the first `limits.heldBodyBytes` and no byte behind them, however
   * they arrive. False when the body failed, took longer than `limits.hintsMs`, or found no room.
   */
  async hold(look: (chunk: Uint8Array) => boolean): Promise<boolean> {
    const alarm = this.#surroundings.after(limits.hintsMs.value);
    let left = limits.heldBodyBytes.value;
    try {
      for (let index = 0; ; index += 1) {
        while (index >= this.#kept.length && !this.#ended && this.replayable) {
          const step = await Promise.race([this.#more(), alarm.rings]);
          if (step === late) this.#break(refuse('hints_late', { limit: limits.hintsMs.value / 1_000 }));
        }
        if (this.#crowded) this.#break(refuse('edge_busy'));
        const chunk = this.#kept[index];
        // At the bound it still matters whether anything follows, for then the body is not held whole.
        if (this.#refusal || !chunk || left <= 0 || !look(chunk.subarray(0, left))) break;
        left -= chunk.byteLength;
      }
    } finally {
      alarm.cancel();
    }
    return this.#refusal === undefined;
  }

  /**
   * The whole body from its first byte, for one agent. Opening it again takes it away from the first stream, and is
   * possible while `replayable`. Cancelling a stream leaves the body as it is.
   */
  open(): ReadableStream<Uint8Array> {
    this.#stream += 1;
    const own = this.#stream;
    let sent = 0;
    this.#handed = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (sent >= this.#kept.length && !this.#ended && own === this.#stream) await this.#more();
          if (own !== this.#stream) return;
          const chunk = this.#kept[sent];
          if (chunk) {
            sent += 1;
            this.#handed = sent;
            controller.enqueue(chunk);
            if (!this.replayable) this.#letGo(sent);
          } else if (this.#refusal || this.#cancelled) {
            // An error and no end: a body that stops half-way must not look complete to the agent.
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
   * All of a short body, in pieces of at most a segment, when it arrives within `limits.gatherMs`: that spares a stream
   * and what goes with it. `undefined` when it does not, or its length is not known.
   */
  async gather(): Promise<readonly Uint8Array[] | undefined> {
    if (this.#length === undefined) return undefined;
    if (!this.#ended) await within(this.#readOn(), limits.gatherMs.value, this.#surroundings);
    return this.handOver();
  }

  /** The same of a body that has arrived. From here on its bytes are kept for another try only. */
  handOver(): readonly Uint8Array[] | undefined {
    const pieces = this.pieces();
    if (!pieces) return undefined;
    this.#stream += 1;
    this.#handed = this.#kept.length;
    return pieces;
  }

  /** All of a body that has arrived, in pieces of at most a segment; `undefined` when it has not, or not so. */
  pieces(): readonly Uint8Array[] | undefined {
    if (!this.#ended || this.#refusal || this.#cancelled || !this.replayable) return undefined;
    // A copy: what is let go later must not be missing from what is being sent.
    const pieces: Uint8Array[] = [];
    for (const piece of this.#kept) {
      if (piece && piece.byteLength > limits.sealSegmentBytes.value) return undefined;
      if (piece) pieces.push(piece);
    }
    return pieces;
  }

  async #readOn(): Promise<void> {
    await this.fill();
    while (!this.#ended && this.replayable) await this.#more();
  }

  /** Nobody wants the rest: streams that were opened break off. What still arrives is for `discard`. */
  cancel(): void {
    if (!this.#ended) this.#cancelled = true;
    this.#ended = true;
    this.#kept.length = 0;
    heldInFlight.remove(this.#buffered, this.#buffered.bytes);
    this.#wake();
  }

  /** Reads what still arrives and throws it away. */
  async discard(): Promise<void> {
    this.cancel();
    // Nothing is worth waiting for from a caller that stands still.
    if (this.#refusal && slow.has(this.#refusal.reason)) return this.#source?.cancel();
    await this.#reading;
    const source = this.#source ?? this.#unread();
    if (source) await discardSource(source, this.#surroundings);
  }

  /** A short upload of which nothing was read. */
  #unread(): Source | undefined {
    const stream = this.received === 0 ? this.#upload?.stream() : undefined;
    return stream && !stream.locked ? openSource(stream) : undefined;
  }

  /** A more entitled body takes the room: what an agent was given is kept no more, what none was given is refused. */
  #release(): void {
    this.#crowded = true;
    if (this.#stream > 0) {
      this.#letGo(this.#handed);
      return;
    }
    this.#break(refuse('edge_busy'));
    this.#letGo(this.#kept.length);
    this.#wake();
  }

  /** What was sent and cannot be needed again. */
  #letGo(sent: number): void {
    for (; this.#gone < sent; this.#gone += 1) {
      heldInFlight.remove(this.#buffered, this.#kept[this.#gone]?.byteLength ?? 0);
      this.#kept[this.#gone] = undefined;
    }
  }

  /** Waits for one more chunk, the end, a failure or `cancel`. Two that wait, wait for the same. */
  #more(): Promise<void> {
    const filling = this.fill();
    if (filling) return Promise.race([filling, this.#cancelling()]);
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return Promise.race([this.#reading, this.#cancelling()]);
  }

  async #read(): Promise<void> {
    if (this.#ended || !this.#source) return;
    let step: Awaited<ReturnType<Source['read']>> | typeof late;
    try {
      step = await within(this.#source.read(), limits.bodyIdleMs.value, this.#surroundings);
    } catch {
      return this.#break(cutOff());
    }
    if (step === late) return this.#break(tooSlow());
    const now = this.#surroundings.now();
    if (!step) return this.#end(now);
    this.#take(step, now);
    if (this.received === this.#length) this.#end(now);
  }

  #end(now: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.endedAt = now;
  }

  #take(step: Uint8Array, now: number): void {
    this.received += step.byteLength;
    if (this.received > limits.bodyBytes.value) {
      this.#break(refuse('body_too_large', { limit: limits.bodyBytes.value }));
      return;
    }
    // What arrives after a cancel is nobody's.
    if (this.#ended) return;
    this.#kept.push(step);
    if (!heldInFlight.add(this.#buffered, step.byteLength, now)) this.#crowded = true;
  }

  #break(refusal: Refusal): void {
    this.#refusal ??= refusal;
    this.#ended = true;
    this.#fail(refusal);
  }
}

const tooSlow = () => refuse('client_slow', { limit: limits.bodyIdleMs.value / 1_000 });
const cutOff = () => refuse('form_invalid', undefined, 'the connection broke while the body was arriving');

const isShort = (length: number | undefined): boolean =>
  length !== undefined && length > 0 && length <= limits.sealSegmentBytes.value;

/** A body whose length is known is read in pieces as long as a segment. */
function open(from: ReadableStream<Uint8Array> | Upload, length: number | undefined): Source | undefined {
  const stream = from instanceof ReadableStream ? from : from.stream();
  if (!stream) return undefined;
  return openSource(stream, length === undefined ? undefined : limits.sealSegmentBytes.value);
}
