import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import type { Result } from '../../../../shared/result.ts';
import type { LinkEvent } from '../../../../shared/stream/link.ts';
import {
  amongLanguages,
  type DetectedLanguage,
  decideLanguage,
  misdirection,
  OPENING_SAMPLES,
} from '../asr/detect-language.ts';
import { PADDING_UNITS } from '../asr/vad/cut.ts';
import { UNIT_SAMPLES } from '../asr/vad/detect.ts';
import { joinSamples } from '../audio/join.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { bugDetail } from '../telemetry/log.ts';
import type { Capture } from './hearing.ts';
import { type Scribe, STREAM_BACKLOG_S } from './scribe.ts';
import type { LiveUtterance } from './utterance.ts';

type Sink = Pick<Scribe, 'utterance' | 'capture' | 'event'>;

type Item =
  | { readonly type: 'utterance'; readonly utterance: LiveUtterance }
  | { readonly type: 'capture'; readonly capture: Capture }
  | { readonly type: 'event'; readonly event: LinkEvent };

export interface LanguageGateParts {
  readonly scribe: Sink;
  /** Languages of the stream's model. */
  readonly served: readonly string[];
  /** Languages among which the speech is; absent: any. */
  readonly languages?: readonly string[] | undefined;
  readonly detect: (samples: Float32Array) => Promise<Result<readonly DetectedLanguage[]>>;
  readonly onLanguage: (detected: DetectedLanguage) => void;
  readonly onRefusal: (refusal: Refusal) => void;
  readonly signal: AbortSignal;
}

/**
 * Holds a stream from its first speech on until its language is known, in order. Detects at the end of each utterance
 * and at `OPENING_SAMPLES` of speech. An uncertain language is refused there, at a client's request, and at the end of
 * the stream; a shorter utterance waits for the next one.
 */
export class LanguageGate implements Sink {
  /** Resolves when nothing is held any more, or the stream was refused. */
  readonly opened: Promise<void>;
  readonly #parts: LanguageGateParts;
  #open: () => void = () => {};
  /** `undefined` once the language is known. */
  #held: Item[] | undefined = [];
  /** Utterances whose speech was not added to the opening. */
  readonly #unheard: LiveUtterance[] = [];
  readonly #speech: Float32Array[] = [];
  #samples = 0;
  /** Those without the silence around utterances. */
  #spoken = 0;
  /** A client waits for an answer, or the stream has ended. */
  #isForced = false;
  #hasEnded = false;
  #running = false;
  detected: DetectedLanguage | undefined;

  constructor(parts: LanguageGateParts) {
    this.#parts = parts;
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  readonly utterance = (utterance: LiveUtterance): void => {
    if (!this.#held) this.#parts.scribe.utterance(utterance);
    else {
      this.#held.push({ type: 'utterance', utterance });
      this.#unheard.push(utterance);
      this.#advance();
    }
  };

  readonly capture = (capture: Capture): void => {
    // Silence before all speech is settled at once, whatever the language.
    if (!this.#held?.length) this.#parts.scribe.capture(capture);
    else {
      if (this.#held.at(-1)?.type === 'capture') this.#held.pop();
      this.#held.push({ type: 'capture', capture });
    }
  };

  /** Answers a client's request, behind what was said before. */
  event(event: LinkEvent): void {
    if (!this.#held?.length) this.#parts.scribe.event(event);
    else {
      this.#held.push({ type: 'event', event });
      this.#force();
    }
  }

  /** Reports whether so much speech is held that no more audio should be read before the decision. */
  isFull(): boolean {
    const held = this.#held ?? [];
    const samples = held.reduce((sum, item) => sum + (item.type === 'utterance' ? item.utterance.samples() : 0), 0);
    return samples > STREAM_BACKLOG_S * MODEL_RATE;
  }

  /** Ends the stream: resolves when the language is decided. */
  async end(): Promise<void> {
    if (!this.#held?.length) return;
    this.#hasEnded = true;
    this.#force();
    await this.opened;
  }

  #force(): void {
    this.#isForced = true;
    this.#advance();
  }

  #advance(): void {
    if (this.#running || !this.#held || this.#parts.signal.aborted) return;
    this.#running = true;
    this.#run().catch((error: unknown) => this.#refuse(refuse('internal', undefined, bugDetail(error))));
  }

  async #run(): Promise<void> {
    do {
      for (let next = this.#unheard.shift(); next; next = this.#unheard.shift()) {
        await this.#hear(next);
        if (await this.#decide()) return;
      }
      if (this.#isForced && (await this.#decide())) return;
      // An utterance that arrived during the detection counts too: it may make an uncertain language certain.
    } while (this.#unheard.length > 0);
    this.#running = false;
  }

  /** Adds the speech of an utterance to the opening, as soon as it is enough or the utterance has ended. */
  async #hear(utterance: LiveUtterance): Promise<void> {
    const windowSamples = OPENING_SAMPLES - this.#samples;
    await new Promise<void>((resolve) => utterance.whenReady(0, { windowSamples, hopSamples: 0 }, resolve));
    if (utterance.discarded()) return;
    const closing = utterance.closing();
    const taken = Math.min(closing?.samples ?? utterance.samples(), windowSamples);
    this.#speech.push(utterance.read(0, taken));
    this.#samples += taken;
    const paddings = closing?.ending === 'endpoint' ? 2 : 1;
    this.#spoken += Math.max(0, taken - paddings * PADDING_UNITS * UNIT_SAMPLES);
  }

  /** Returns true when nothing is left to decide. */
  async #decide(): Promise<boolean> {
    const { detect, served, languages, onLanguage, signal } = this.#parts;
    if (this.#samples === 0) return this.#forgetSilence();
    const found = await detect(joinSamples(this.#speech));
    if (signal.aborted) return true;
    if (!found.ok) return this.#refuse(found.refusal);
    const decided = decideLanguage(amongLanguages(found.value, languages), this.#spoken);
    const isLast = this.#samples >= OPENING_SAMPLES || (this.#isForced && this.#unheard.length === 0);
    if (!decided.ok) return isLast && this.#refuse(decided.refusal);
    const elsewhere = misdirection(decided.value, served, languages);
    if (elsewhere) return this.#refuse(elsewhere);
    this.detected = decided.value;
    onLanguage(decided.value);
    return this.#release();
  }

  /** Passes on what is held where all speech was discarded: the language is still to be detected. */
  #forgetSilence(): boolean {
    if (this.#unheard.length > 0 || !this.#isForced) return false;
    this.#isForced = false;
    this.#passOn(this.#held ?? []);
    this.#held = [];
    if (this.#hasEnded) this.#open();
    return this.#hasEnded;
  }

  #release(): true {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#passOn(held);
    this.#open();
    return true;
  }

  #passOn(held: readonly Item[]): void {
    const { scribe } = this.#parts;
    for (const item of held) {
      if (item.type === 'utterance') scribe.utterance(item.utterance);
      else if (item.type === 'capture') scribe.capture(item.capture);
      else scribe.event(item.event);
    }
  }

  #refuse(refusal: Refusal): true {
    this.#held = undefined;
    this.#parts.onRefusal(refusal);
    this.#open();
    return true;
  }
}
