// Reads SSML 1.1 (W3C Recommendation, 2010) into steps of plain text and silence.
import { SaxesParser } from 'saxes';
import { servesLanguage } from '../../../../shared/pool/language.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { PARAGRAPH_MS, type Prosody, SENTENCE_MS, SpeechPlan, type Step } from './speech-plan.ts';
import { breakMs, pitchFactor, rateFactor, sayAs } from './ssml-values.ts';

/** Elements that the agent can render; a voice declares which of them it takes. */
export const ssmlElements = ['speak', 'p', 's', 'break', 'prosody', 'sub', 'say-as'] as const;
/** Deepest nesting: people nest four levels. */
const SSML_LEVELS_MAX = 16;

const attributes: Readonly<Record<string, readonly string[]>> = {
  speak: ['version'],
  break: ['time', 'strength'],
  prosody: ['rate', 'pitch'],
  sub: ['alias'],
  'say-as': ['interpret-as'],
};

/** Voice that reads the document. */
export interface SsmlVoice {
  readonly model: string;
  readonly languages: readonly string[];
  /** Elements that it takes. */
  readonly ssml: readonly string[];
}

/** An open element: the prosody of its content, and how its text is read. */
interface Level {
  readonly name: string;
  readonly prosody: Prosody;
  readonly transform: (text: string) => Result<string>;
}

const silent = (): Result<string> => ok('');

/**
 * Returns the steps of a document. Refuses with `text_invalid` what is not well-formed, declares a document type, or has
 * an element, attribute or value that the voice does not take; with `language_unknown` another language.
 */
export function readSsml(text: string, rate: number, voice: SsmlVoice): Result<readonly Step[]> {
  const reader = new SsmlReader(rate, voice);
  const parser = new SaxesParser();
  // The parser replaces the five entities of XML and character references, and fails on every other one.
  parser.on('error', ({ message }) => reader.fail(`it is not well-formed XML (${message})`));
  parser.on('doctype', () => reader.fail('a document type is not allowed'));
  parser.on('processinginstruction', () => reader.fail('a processing instruction is not allowed'));
  parser.on('opentag', (tag) => reader.open(tag.name, tag.attributes));
  parser.on('closetag', () => reader.close());
  parser.on('text', (piece) => reader.text(piece));
  parser.on('cdata', () => reader.fail('a CDATA section is not allowed'));
  parser.write(text.trim()).close();
  return reader.finish();
}

class SsmlReader {
  readonly #voice: SsmlVoice;
  readonly #plan = new SpeechPlan();
  readonly #levels: Level[] = [];
  readonly #base: Prosody;
  #text = '';
  #failure: Result<never> | undefined;

  constructor(rate: number, voice: SsmlVoice) {
    this.#voice = voice;
    this.#base = { rate, pitch: 1 };
  }

  fail(rule: string): void {
    this.#failure ??= no(refuse('text_invalid', { rule }));
  }

  /** Stops at the first refusal: what follows is not read. */
  #take<T>(result: Result<T>, fallback: T): T {
    if (result.ok) return result.value;
    this.#failure ??= result;
    return fallback;
  }

  open(name: string, given: Readonly<Record<string, string>>): void {
    const rule = this.#ruleAgainst(name);
    if (rule !== undefined) this.fail(rule);
    if (this.#failure) return;
    this.#checkAttributes(name, given);
    // Text keeps flowing over elements that change nothing but its words.
    if (name !== 'sub' && name !== 'say-as') this.#flush(name === 'break' || name === 'prosody' ? 0 : SENTENCE_MS);
    const outer = this.#levels.at(-1)?.prosody ?? this.#base;
    this.#levels.push({
      name,
      prosody: this.#prosodyOf(name, given, outer),
      transform: this.#transformOf(name, given),
    });
    if (name === 'sub') this.#text += given.alias ?? '';
    if (name === 'break') this.#plan.pause(this.#take(breakMs(given), 0));
  }

  close(): void {
    const name = this.#levels.at(-1)?.name;
    if (name === 'p' || name === 'speak') this.#flush(PARAGRAPH_MS);
    else if (name === 's') this.#flush(SENTENCE_MS);
    else if (name === 'prosody') this.#flush(0);
    this.#levels.pop();
  }

  text(piece: string): void {
    const level = this.#levels.at(-1);
    if (!level || this.#failure) return;
    this.#text += this.#take(level.transform(piece), '');
  }

  finish(): Result<readonly Step[]> {
    return this.#failure ?? this.#plan.finish();
  }

  /** Returns the rule that an element breaks where it stands. */
  #ruleAgainst(name: string): string | undefined {
    const levels = this.#levels;
    const top = levels.at(-1)?.name;
    if (!this.#voice.ssml.includes(name)) return `the voice does not take the SSML element "${name.slice(0, 40)}"`;
    if ((levels.length === 0) !== (name === 'speak'))
      return `"speak" must be the root, once, and here is "${name.slice(0, 40)}"`;
    if (levels.length >= SSML_LEVELS_MAX) return `elements nest over ${SSML_LEVELS_MAX} levels`;
    return top === 'sub' || top === 'say-as' || top === 'break' ? `"${top}" cannot contain "${name}"` : undefined;
  }

  /** Adds the text so far, with the prosody of the open element. */
  #flush(pauseMs: number): void {
    const text = this.#text;
    this.#text = '';
    const prosody = this.#levels.at(-1)?.prosody ?? this.#base;
    if (!this.#failure) this.#plan.say(text, prosody, pauseMs);
  }

  #checkAttributes(name: string, given: Readonly<Record<string, string>>): void {
    for (const [attribute, value] of Object.entries(given)) {
      if (attribute === 'xml:lang') {
        if (servesLanguage(this.#voice.languages, value)) continue;
        const { model } = this.#voice;
        this.#failure ??= no(refuse('language_unknown', { model, language: value.slice(0, 35) }));
      } else if (!(attributes[name] ?? []).includes(attribute) && !/^xmlns(:|$)|^xsi:/.test(attribute)) {
        this.fail(`the SSML element "${name}" does not take the attribute "${attribute}"`);
      }
    }
  }

  #prosodyOf(name: string, { rate, pitch }: Readonly<Record<string, string>>, outer: Prosody): Prosody {
    if (name !== 'prosody') return outer;
    return {
      rate: rate === undefined ? outer.rate : this.#take(rateFactor(rate, outer.rate), 1),
      pitch: pitch === undefined ? outer.pitch : this.#take(pitchFactor(pitch, outer.pitch), 1),
    };
  }

  #transformOf(name: string, given: Readonly<Record<string, string>>): Level['transform'] {
    if (name === 'sub') {
      if (given.alias === undefined) this.fail('the SSML element "sub" needs the attribute "alias"');
      return silent;
    }
    if (name === 'break') {
      return (text) => (text.trim() === '' ? silent() : no(refuse('text_invalid', { rule: '"break" is not empty' })));
    }
    return name === 'say-as' ? (text) => sayAs(text, given['interpret-as'] ?? '') : ok;
  }
}
