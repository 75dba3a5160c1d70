import { splitText } from '../../../../shared/jobs/split-text.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { foreignLetters, spellOut } from './spell-out.ts';

/** Factors of the voice's natural rate and pitch. */
export interface Prosody {
  readonly rate: number;
  readonly pitch: number;
}

/** A sentence to synthesise and the silence before it; the last one may be silence only, without text. */
export interface Step extends Prosody {
  readonly silenceMs: number;
  readonly text: string;
}

/** Pause between two sentences at the natural rate. */
export const SENTENCE_MS = 250;
/** Pause between two paragraphs. */
export const PARAGRAPH_MS = 500;
/** Explicit silence of one request: markup of a few bytes must not make hours of sound. */
const SILENCE_MS_MAX = 60_000;

/** Collects the steps of one request, with pauses between sentences and none behind the last. */
export class SpeechPlan {
  readonly #steps: Step[] = [];
  /** Silence before the next sentence. */
  #silenceMs = 0;
  /** The silence comes from breaks, which replace the pause that would stand there. */
  #isExplicit = false;
  #breaksMs = 0;
  /** Letters of other scripts that the text has. */
  #foreign: string | undefined;

  /** Adds a text, sentence by sentence, and a pause before what follows. Skips what has no sound. */
  say(text: string, prosody: Prosody, pauseMs: number): void {
    for (const [block, sentences] of splitText(text).entries()) {
      for (const [at, sentence] of sentences.entries()) {
        if (at > 0) this.#wait(SENTENCE_MS / prosody.rate);
        else if (block > 0) this.#wait(PARAGRAPH_MS / prosody.rate);
        this.#foreign ??= foreignLetters(sentence);
        if (spellOut(sentence) !== '') this.#add(sentence, prosody);
      }
    }
    if (text.trim() !== '') this.#wait(pauseMs / prosody.rate);
  }

  /** Adds silence in place of the pause that would stand here. */
  pause(silenceMs: number): void {
    this.#silenceMs = (this.#isExplicit ? this.#silenceMs : 0) + silenceMs;
    this.#isExplicit = true;
    this.#breaksMs += silenceMs;
  }

  finish(): Result<readonly Step[]> {
    if (this.#steps.length === 0) return no(refuse('text_unspeakable'));
    if (this.#foreign !== undefined) return no(refuseForeign(this.#foreign));
    if (this.#breaksMs > SILENCE_MS_MAX) {
      const rule = `its breaks are over ${SILENCE_MS_MAX / 1_000} s together`;
      return no(refuse('text_invalid', { rule }));
    }
    if (this.#isExplicit) this.#add('', { rate: 1, pitch: 1 });
    return ok(this.#steps);
  }

  #add(text: string, prosody: Prosody): void {
    const isFirst = this.#steps.length === 0 && !this.#isExplicit;
    this.#steps.push({ silenceMs: isFirst ? 0 : this.#silenceMs, text, ...prosody });
    this.#silenceMs = 0;
    this.#isExplicit = false;
  }

  #wait(pauseMs: number): void {
    if (!this.#isExplicit) this.#silenceMs = Math.max(this.#silenceMs, pauseMs);
  }
}

/** Returns the refusal of a text with letters of other scripts: without their words it would say something else. */
export const refuseForeign = (letters: string): Refusal =>
  refuse('text_invalid', { rule: `the voice does not speak the letters ${letters}` });

/** Returns the steps of a plain text. */
export function planText(text: string, rate: number): Result<readonly Step[]> {
  const plan = new SpeechPlan();
  plan.say(text, { rate, pitch: 1 }, 0);
  return plan.finish();
}
