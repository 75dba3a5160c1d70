import { spellNumbers } from './spell-numbers.ts';
import { letterNames, letters, shortForms, signs } from './word-tables.ts';

const VOWEL = /[aeiouy]/i;
/** Longer words in capitals are said as words. */
const INITIALS_MAX = 3;
/** Without a vowel a word is letters, up to here; longer ones are noises: pssst. */
const CONSONANTS_MAX = 4;
const NOISES: ReadonlySet<string> = new Set(['hmm', 'shh', 'psst', 'mm', 'brr', 'pst', 'hm', 'nth']);
/** Longest speakable word, in letters. */
const WORD_MAX = 30;

const spellLetters = (word: string) => [...word.toLowerCase()].map((letter) => letterNames.get(letter) ?? '').join(' ');

/** Latin letters without marks, plain quotes and dashes. */
const toPlainLetters = (text: string) =>
  text
    .replace(/[‘’ʼ‛`´]/g, "'")
    .replace(/½/g, ' one half ')
    .replace(/¼/g, ' one quarter ')
    .replace(/¾/g, ' three quarters ')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\0-\u007f]/gu, (sign) => letters.get(sign) ?? letters.get(sign.toLowerCase()) ?? sign);

/** Addresses of the web as they are dictated. */
const spellAddresses = (text: string) =>
  text.replace(/\bhttps?:\/\//gi, '').replace(/([a-z0-9])\.(?=(?:[a-z]{2,}\b))/g, '$1 dot ');

const spellShortForms = (text: string) =>
  text
    .replace(/\b(?:[A-Za-z]\.){2,}/g, (form) => {
      const known = shortForms.get(form.slice(0, -1).toLowerCase());
      return ` ${known ?? spellLetters(form.replaceAll('.', ''))} `;
    })
    .replace(/\bNo\.\s?(?=\d)/gi, 'number ')
    .replace(/#\s?(?=\d)/g, 'number ')
    .replace(/\bSt\.(?=\s[A-Z])/g, 'saint')
    .replace(/\bst\./gi, 'street')
    .replace(/\b([A-Za-z]{2,6})\./g, (whole, word: string) => shortForms.get(word.toLowerCase()) ?? whole);

/** One word of letters and apostrophes, in the case it was written in. `shouted`: the whole text is in capitals. */
function spellWord(word: string, shouted: boolean): string {
  const plural = /^([A-Z]{2,})'?s$/.exec(word);
  if (plural && !shouted) return `${spellLetters(plural[1]!)}s`;
  const low = word.toLowerCase().replace(/^'+|'+$/g, '');
  if (low === 'a' || low === 'i' || NOISES.has(low)) return low;
  const capitals = !shouted && /^[A-Z]{2,}$/.test(word);
  if (low.length === 1 || (capitals && low.length <= INITIALS_MAX)) return spellLetters(low);
  if (/^[a-z]+$/.test(low) && !VOWEL.test(low) && low.length <= CONSONANTS_MAX) return spellLetters(low);
  return low.length > WORD_MAX ? low.replace(new RegExp(`.{${WORD_MAX}}(?=.)`, 'g'), '$& ') : low;
}

/** Reduces pauses to commas, full stops and question marks: one in a place, behind a word. */
const tidyPauses = (text: string) =>
  text
    .replace(/\.{2,}|\s-+\s|--+|[–—;:()[\]{}|…]/g, ', ')
    .replace(/!/g, '.')
    .replace(/[^a-z',.? ]/g, ' ')
    .replace(/(?<![a-z])'+|'+(?![a-z])/g, '')
    .replace(/[ ,.?]*([.?])[ ,.?]*|[ ,]*,[ ,]*/g, (_, end?: string) => (end ? `${end} ` : ', '))
    .replace(/ +/g, ' ')
    .replace(/^[ ,.?']+| $/g, '');

/** Most letters that a refusal names. */
const NAMED_MAX = 8;

/** Returns letters and digits of other scripts in a text, each once; `undefined` when it has none. */
export function foreignLetters(text: string): string | undefined {
  const found =
    toPlainLetters(text)
      .match(/[^\0-\u007f]/gu)
      ?.filter((sign) => /[\p{L}\p{N}]/u.test(sign)) ?? [];
  return found.length > 0 ? [...new Set(found)].slice(0, NAMED_MAX).join(' ') : undefined;
}

/**
 * Spells out English text for a voice: small letters, apostrophes, spaces, commas, full stops and question
 * marks. Numbers, dates, money and short forms become words; signs without a name, such as emoji, are left out. Empty
 * when nothing remains. Callers refuse texts with `foreignLetters` first, since their words would be left out, too.
 */
export function spellOut(text: string): string {
  const plain = toPlainLetters(text);
  const shouted = !/[a-z]/.test(plain);
  const words = spellNumbers(spellShortForms(spellAddresses(plain)))
    .replace(/[&@%+=°×÷<>€£$]/g, (sign) => signs.get(sign)!)
    .replace(/(?<=[A-Za-z])-(?=[A-Za-z])|_|\/|\\/g, ' ')
    .replace(/[A-Za-z][A-Za-z']*/g, (word) => spellWord(word, shouted));
  const tidy = tidyPauses(words.toLowerCase());
  return /[a-z]/.test(tidy) ? tidy : '';
}
