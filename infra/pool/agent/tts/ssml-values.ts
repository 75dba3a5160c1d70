// Values of SSML attributes (SSML 1.1 §3.1.8, §3.2.3, §3.2.4).
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SPEECH_RATE_MAX, SPEECH_RATE_MIN } from '../../../../shared/speech/speak.ts';

/** Lowest pitch: lower speech sounds like a slowed tape. */
const PITCH_MIN = 0.67;
/** Highest pitch, seven semitones up. */
const PITCH_MAX = 1.5;
/** Longest silence of one break: a longer one separates requests. */
const BREAK_MS_MAX = 10_000;

const strengths: Readonly<Record<string, number>> = {
  none: 0,
  'x-weak': 60,
  weak: 120,
  medium: 250,
  strong: 500,
  'x-strong': 1_000,
};
const rates: Readonly<Record<string, number>> = {
  'x-slow': 0.5,
  slow: 0.75,
  medium: 1,
  default: 1,
  fast: 1.35,
  'x-fast': 1.8,
};
const pitches: Readonly<Record<string, number>> = {
  'x-low': 0.7,
  low: 0.85,
  medium: 1,
  default: 1,
  high: 1.2,
  'x-high': 1.45,
};

const invalid = (attribute: string, value: string, rule: string): Result<never> =>
  no(refuse('text_invalid', { rule: `the SSML value ${attribute}="${value.slice(0, 40)}" ${rule}` }));

/** Returns the silence of a `break`, ms. */
export function breakMs({ time, strength = 'medium' }: Readonly<Record<string, string>>): Result<number> {
  if (time === undefined) {
    const known = Object.hasOwn(strengths, strength) ? strengths[strength] : undefined;
    return known === undefined ? invalid('strength', strength, 'is not known') : ok(known);
  }
  const [, number, unit] = /^\s*\+?(\d{1,6}(?:\.\d{1,3})?|\.\d{1,3})(ms|s)\s*$/.exec(time) ?? [];
  const milliseconds = Number(number) * (unit === 's' ? 1_000 : 1);
  if (milliseconds >= 0 && milliseconds <= BREAK_MS_MAX) return ok(milliseconds);
  return invalid('time', time, `is not a time such as "500ms" or "2s", at most ${BREAK_MS_MAX / 1_000} s`);
}

/** A factor as a percentage: `120%` is absolute, `+20%` and `-20%` are relative to 1. */
function percentage(value: string): number | undefined {
  const [, sign, number] = /^\s*([+-]?)(\d{1,4}(?:\.\d{1,3})?)%\s*$/.exec(value) ?? [];
  if (number === undefined) return undefined;
  const share = Number(number) / 100;
  return sign === '' ? share : 1 + (sign === '-' ? -share : share);
}

/** Returns the rate within an element whose own rate is `outer`. */
export function rateFactor(value: string, outer: number): Result<number> {
  const bare = /^\s*(\d{1,2}(?:\.\d{1,3})?)\s*$/.exec(value)?.[1];
  const factor = Object.hasOwn(rates, value) ? rates[value] : bare === undefined ? percentage(value) : Number(bare);
  const rate = outer * (factor ?? Number.NaN);
  if (rate >= SPEECH_RATE_MIN && rate <= SPEECH_RATE_MAX) return ok(rate);
  const rule = `does not give a rate from ${100 * SPEECH_RATE_MIN}% to ${100 * SPEECH_RATE_MAX}%`;
  return invalid('rate', value, rule);
}

/** Returns the pitch within an element whose own pitch is `outer`: a name, a change in percent or in semitones. */
export function pitchFactor(value: string, outer: number): Result<number> {
  const [, semitones] = /^\s*([+-]?\d{1,2}(?:\.\d{1,3})?)st\s*$/.exec(value) ?? [];
  const change = /^\s*[+-]/.test(value) ? percentage(value) : undefined;
  const factor = Object.hasOwn(pitches, value)
    ? pitches[value]
    : semitones === undefined
      ? change
      : 2 ** (Number(semitones) / 12);
  const pitch = outer * (factor ?? Number.NaN);
  if (pitch >= PITCH_MIN && pitch <= PITCH_MAX) return ok(pitch);
  const rule = `does not change the pitch by -${Math.round(100 - 100 * PITCH_MIN)}% to +${100 * PITCH_MAX - 100}%`;
  return invalid('pitch', value, rule);
}

const spelled = (text: string): string => [...text.replace(/\s+/g, '')].join(' ');

const readings: Readonly<Record<string, (text: string) => string>> = {
  characters: spelled,
  'spell-out': spelled,
  verbatim: spelled,
  digits: (text) => text.replace(/\d/g, ' $& '),
  telephone: (text) => text.replace(/\d/g, ' $& ').replace(/[^\d+\s]+/g, ', '),
  cardinal: (text) => text,
  number: (text) => text,
  ordinal: (text) => text.replace(/\d+(?!\d|st|nd|rd|th)/g, '$&th'),
};

/** Returns the text of a `say-as` as plain text that is read that way. */
export function sayAs(text: string, as: string): Result<string> {
  const reading = Object.hasOwn(readings, as) ? readings[as] : undefined;
  return reading ? ok(reading(text)) : invalid('interpret-as', as, 'is not known to the voice');
}
