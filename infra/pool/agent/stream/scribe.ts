import { ok, type Result } from '../../../../shared/result.ts';
import { biasOf } from '../../../../shared/speech/terms.ts';
import type { LinkEvent, StreamOptions } from '../../../../shared/stream/link.ts';
import type { CtcRecogniser, Recogniser, TextRecogniser } from '../asr/segment.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Capture } from './hearing.ts';
import { createRedecoding, redecodeAfter } from './redecode.ts';
import { type RebuildCause, Sequence, type SequenceParts } from './sequence.ts';
import { afterUtterance } from './stall.ts';
import type { LiveUtterance, WindowShape } from './utterance.ts';
import { type createInterims, createWords, type LiveSegment } from './words.ts';

/** Cut and unrecognised sound of a stream: over the longest utterance; beyond it the agent stops reading. */
export const STREAM_BACKLOG_S = 30;
/** Answers of a stream that wait for the utterance before them; beyond it the agent stops reading. */
const STREAM_MARKS_MAX = 256;
/** Delay of one window of a fast client's sound, to keep its sequence alive until the next. */
const SEQUENCE_HOLD_MS = 500;

/** Time of the last word, and whether the pause after it was reported. */
export interface LastWord {
  readonly end: number;
  readonly told: boolean;
}

type Item =
  | { readonly type: 'utterance'; readonly utterance: LiveUtterance }
  | { readonly type: 'capture'; readonly capture: Capture }
  | { readonly type: 'event'; readonly event: LinkEvent };

export interface ScribeParts extends Omit<SequenceParts, 'onStep' | 'width'> {
  readonly recogniser: Recogniser;
  readonly options: StreamOptions;
  /** Number of the next segment. */
  readonly index: number;
  readonly lastWord: LastWord | undefined;
  readonly send: (event: LinkEvent) => void;
  /** Interims are not worth waiting for: none is made while the edge does not read. */
  readonly mayInterim: () => boolean;
  readonly checkpoint: (capture: Capture, index: number, lastWord: LastWord | undefined) => void;
  /** A window was answered; how far that is, in seconds of the session. */
  readonly onWindow: (until: number) => void;
  readonly onUtterance: (seconds: number) => void;
}

/**
 * Writes down what was said: takes utterances in order, one at a time and one window at a time, and sends what becomes
 * of them. Whatever has to come after an utterance waits behind it. Ends with a refusal when the engine is given up.
 */
export class Scribe {
  readonly #parts: ScribeParts;
  #options: StreamOptions;
  #index: number;
  #lastWord: LastWord | undefined;
  readonly #items: Item[] = [];
  #current: LiveUtterance | undefined;
  /** Samples of the current one that were recognised. */
  #done = 0;
  #ended = false;
  /** End of the audio received so far, in seconds. */
  #receivedUntil = 0;
  #wake = () => {};
  /** Nothing waits to be written, and nothing is being written. */
  #idle = false;
  #onDrain: (() => void)[] = [];
  /** Buffer of the window that is being recognised: there is one at a time, and they are long. */
  readonly #scratch: Float32Array;
  /** Sound comes in pieces with pauses that sequences do not survive: the last window of each waits for the pause. */
  #bursts = false;
  #holdUntil = 0;
  #release = () => {};
  /** Ends the one pause at a time. A promise that lives as long as the stream would keep every race it was ever in. */
  #endPause = () => {};

  constructor(parts: ScribeParts) {
    this.#parts = parts;
    this.#options = parts.options;
    this.#index = parts.index;
    this.#lastWord = parts.lastWord;
    this.#scratch = new Float32Array('text' in parts.recogniser ? 0 : parts.live.windowSamples);
    parts.signal.addEventListener('abort', () => this.#endPause(), { once: true });
  }

  /** Works until `finish` was called and all is written, or the signal aborts. */
  async run(): Promise<Result<undefined>> {
    while (!this.#parts.signal.aborted) {
      const item = this.#items.shift();
      if (item) {
        const settled = item.type === 'utterance' ? await this.#write(item.utterance) : ok(this.#deliver(item));
        this.#resumeReaders();
        if (!settled.ok) return settled;
        continue;
      }
      if (this.#ended) break;
      this.#idle = true;
      await this.#pause((resume) => {
        this.#wake = () => {
          this.#idle = false;
          resume();
        };
      });
      this.#idle = false;
    }
    return ok(undefined);
  }

  readonly utterance = (utterance: LiveUtterance) => this.#add({ type: 'utterance', utterance });

  readonly capture = (capture: Capture) => this.#add({ type: 'capture', capture });

  event(event: LinkEvent) {
    this.#add({ type: 'event', event });
  }

  finish() {
    this.#ended = true;
    this.#wake();
  }

  /** So much was heard, in seconds: nothing that waits to be written can hold a word any more. */
  received(until: number) {
    this.#receivedUntil = until;
    this.#judgeIdleSilence();
  }

  options(next: StreamOptions) {
    this.#options = next;
  }

  /** Reports whether so much waits to be written that no more audio should be read. */
  full(): boolean {
    return this.#waiting() > STREAM_BACKLOG_S * MODEL_RATE || this.#items.length > STREAM_MARKS_MAX;
  }

  /** Resolves when more may be heard. */
  drained(): Promise<void> {
    if (!this.full() || this.#parts.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => this.#onDrain.push(resolve));
  }

  segments(): number {
    return this.#index;
  }

  #add(item: Item) {
    // The later of two checkpoints replaces the earlier when no word lies between them.
    if (item.type === 'capture' && this.#items.at(-1)?.type === 'capture') this.#items.pop();
    // An idle scribe sends it at once.
    if (this.#idle && item.type !== 'utterance' && !this.#parts.signal.aborted) return this.#deliver(item);
    this.#items.push(item);
    this.#wake();
  }

  #deliver(item: Exclude<Item, { type: 'utterance' }>) {
    if (item.type === 'event') this.#parts.send(item.event);
    else this.#parts.checkpoint(item.capture, this.#index, this.#lastWord);
  }

  #waiting(): number {
    let samples = this.#current ? this.#current.samples() - this.#done : 0;
    for (const item of this.#items) if (item.type === 'utterance') samples += item.utterance.samples();
    return samples;
  }
  #resumeReaders() {
    if (this.#onDrain.length === 0 || (this.full() && !this.#parts.signal.aborted)) return;
    const resumes = this.#onDrain;
    this.#onDrain = [];
    for (const resume of resumes) resume();
  }

  /** Sends the end of an utterance once the silence up to `until`, in seconds, is long enough. */
  #judgeSilence(until: number) {
    const { utteranceEndMs } = this.#options;
    if (!this.#lastWord || this.#lastWord.told || utteranceEndMs === undefined) return;
    if (until < this.#lastWord.end + utteranceEndMs / 1_000) return;
    this.#lastWord = { end: this.#lastWord.end, told: true };
    this.#parts.send({ type: 'utterance_end', lastWordEnd: this.#lastWord.end });
  }

  /** Nothing that waits to be written can hold a word any more. */
  #judgeIdleSilence() {
    if (!this.#current && !this.#items.some((item) => item.type === 'utterance'))
      this.#judgeSilence(this.#receivedUntil);
  }

  async #transcribe(utterance: LiveUtterance): Promise<Result<undefined>> {
    const { recogniser } = this.#parts;
    const segments = await ('text' in recogniser
      ? this.#redecode(utterance, recogniser)
      : this.#decode(utterance, recogniser));
    if (!segments.ok) return segments;
    for (const segment of segments.value) {
      this.#parts.send(segment);
      this.#index++;
      this.#lastWord = { end: segment.end, told: false };
    }
    return ok(undefined);
  }

  /** Returns the segments of an utterance by a model that takes whole recordings; none of a discarded one. */
  async #redecode(utterance: LiveUtterance, recogniser: TextRecogniser): Promise<Result<LiveSegment[]>> {
    const { live, clock, onWindow, onUtterance } = this.#parts;
    const bias = biasOf(undefined, this.#options.terms);
    const redecoding = createRedecoding({ ...this.#parts, recogniser, bias }, utterance.start);
    let tookMs = 0;
    for (;;) {
      const shape = { windowSamples: this.#done + redecodeAfter(live.hopSamples, tookMs), hopSamples: 0 };
      if (!utterance.has(0, shape)) await this.#pause((resume) => utterance.whenReady(0, shape, resume));
      if (this.#parts.signal.aborted || utterance.discarded()) return ok([]);
      const closing = utterance.closing();
      if (closing) {
        onUtterance(closing.samples / MODEL_RATE);
        const segments = await redecoding.finish(utterance.read, closing, this.#index);
        onWindow(redecoding.until());
        return segments;
      }
      const to = utterance.samples();
      if (this.#wantsInterims()) {
        const begun = clock.now();
        const decoded = await redecoding.push(utterance.read, to);
        if (!decoded.ok) return decoded;
        tookMs = clock.now() - begun;
        if (utterance.discarded()) return ok([]);
        onWindow(redecoding.until());
        this.#send(redecoding.interim(this.#index), redecoding.until());
      }
      this.#done = to;
      this.#resumeReaders();
    }
  }

  async #decode(utterance: LiveUtterance, recogniser: CtcRecogniser): Promise<Result<LiveSegment[]>> {
    const sequence = new Sequence(utterance, {
      ...this.#parts,
      width: recogniser.decoder.width,
      onRebuild: (cause) => this.#onRebuild(cause),
    });
    const words = createWords(recogniser, utterance.start, this.#options.terms);
    try {
      for (let number = 0; ; number++) {
        const window = await this.#nextWindow(utterance, number, this.#parts.live);
        if (!window) return ok([]);
        const scores = await sequence.score(number, window);
        if (!scores.ok) return scores;
        const taken = words.push(scores.value);
        if (!taken.ok) return taken;
        this.#release();
        this.#holdUntil = this.#parts.clock.now() + SEQUENCE_HOLD_MS;
        this.#done = number * this.#parts.live.hopSamples + window.samples.length;
        this.#parts.onWindow(words.until());
        this.#resumeReaders();
        if (utterance.discarded()) return ok([]);
        if (window.last) break;
        this.#look(utterance, words);
      }
      this.#parts.stall.limit = afterUtterance(this.#parts.stall.limit);
      const closing = utterance.closing();
      if (!closing) throw new Error('an utterance without an end');
      this.#parts.onUtterance(closing.samples / MODEL_RATE);
      return await words.finish(closing, utterance.samples(), this.#index);
    } finally {
      sequence.abandon();
    }
  }

  #onRebuild(cause: RebuildCause) {
    this.#bursts ||= cause === 'parked';
    this.#parts.onRebuild?.(cause);
  }

  #look(utterance: LiveUtterance, words: ReturnType<typeof createWords>) {
    if (this.#wantsInterims()) this.#send(words.interim(this.#index, utterance.samples()), words.until());
  }

  #wantsInterims(): boolean {
    return this.#mayInterim() || this.#options.utteranceEndMs !== undefined;
  }

  #mayInterim(): boolean {
    return this.#options.interim && this.#parts.mayInterim();
  }

  /** Sends an interim. Without a word the silence up to `until`, in seconds, goes on. */
  #send({ event, lastWordEnd }: ReturnType<ReturnType<typeof createInterims>['next']>, until: number) {
    if (event && this.#mayInterim()) this.#parts.send(event);
    if (lastWordEnd === undefined) this.#judgeSilence(until);
  }

  /** Returns undefined once the utterance is discarded or the stream ends. */
  async #nextWindow(utterance: LiveUtterance, number: number, shape: WindowShape) {
    for (;;) {
      if (this.#parts.signal.aborted || utterance.discarded()) return undefined;
      const rest =
        number > 0 && this.#bursts && !utterance.has(number + 1, shape) ? this.#holdUntil - this.#parts.clock.now() : 0;
      if (rest <= 0) {
        const window = utterance.window(number, shape, this.#scratch);
        if (window) return window;
      }
      await this.#pause((resume) => {
        utterance.whenReady(rest > 0 ? number + 1 : number, shape, resume);
        if (rest > 0) void this.#hold(rest).then(resume);
      });
    }
  }

  /** Resolves after so many milliseconds, or at the next hold or answer. */
  #hold(milliseconds: number): Promise<void> {
    this.#release();
    return new Promise((resolve) => {
      this.#release = this.#parts.clock.after(milliseconds, resolve);
    });
  }

  #pause(until: (resume: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      this.#endPause = resolve;
      until(resolve);
    });
  }

  async #write(utterance: LiveUtterance): Promise<Result<undefined>> {
    // Sound may come faster than it is written down: silence before and after an utterance is judged when it is known
    // to hold no word.
    this.#judgeSilence(utterance.start / MODEL_RATE);
    this.#current = utterance;
    this.#done = 0;
    const result = await this.#transcribe(utterance);
    utterance.release();
    this.#current = undefined;
    this.#judgeIdleSilence();
    return result;
  }
}
