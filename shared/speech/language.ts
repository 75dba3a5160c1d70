import { canonicalTag } from '../pool/language.ts';

// Languages as clients write them: BCP 47 tags, English names as Whisper's tools send them, and lists of both.

const tag = '[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}';
const name = '[A-Za-z]{4,24}(?: [A-Za-z]{4,24})?';

/** One language, or several between commas. `auto` is a name. */
export const languageList = new RegExp(`^(?:${tag}|${name})(?:, ?(?:${tag}|${name})){0,15}$`);

const alphabet = [...'abcdefghijklmnopqrstuvwxyz'];
let codes: ReadonlyMap<string, string> | undefined;

/** Names without a two-letter code, or beside its name, as Whisper's tools send them. */
const NAMES = [
  ['cantonese', 'yue'],
  ['castilian', 'es'],
  ['mandarin', 'zh'],
] as const;

/** Codes by the English name of their language, in lower case: two-letter ones (ISO 639-1) and `NAMES`. */
function codesByName(): ReadonlyMap<string, string> {
  if (codes) return codes;
  const english = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' });
  const all = alphabet.flatMap((first) => alphabet.map((second) => first + second));
  const named = all.flatMap((code) => {
    const one = english.of(code);
    return one ? [[one.toLowerCase(), canonicalTag(code)] as const] : [];
  });
  codes = new Map([...named, ...NAMES]);
  return codes;
}

const TAG = new RegExp(`^${tag}$`);

/** Returns the canonical tag of a language; `auto` for a list of several, which leaves the choice to the model. */
export function tagOfLanguage(language: string): string {
  if (language.includes(',')) return 'auto';
  if (TAG.test(language)) return canonicalTag(language);
  // A name that is no language stays as it is, and no model serves it.
  return codesByName().get(language.toLowerCase()) ?? language;
}

/** Returns the tags of a list of several; `undefined` for one language, and for a list with `auto`. */
export function listedLanguages(language: string): readonly string[] | undefined {
  const tags = language.split(',').map((one) => tagOfLanguage(one.trim()));
  return tags.length === 1 || tags.includes('auto') ? undefined : tags;
}
