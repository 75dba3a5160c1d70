import type { Tree } from './tree.ts';

/** Longest name, in words, without the IDs of its requirements. */
const WORDS_MAX = 14;
/** First words of a name that hides condition and outcome: CONTRIBUTING.md, "Words". */
const OBLIQUE = /^(Of|What|Who|Whose|Whom|Where|Which|Until|Besides?)\b/i;
const PERSONS = /\b(nobody|whoever|somebody|anybody|everybody|who|whom|told|asked|anew|one that)\b/i;
const IDS = /^(?:(?:[A-Z]\d+|§[\d-]+|MUST \d+)[ ,:]+)+/;

/** A call of `it`, `test`, `describe` or of what their `each` returns, and its name. */
const NAMED =
  /(?:\b(?:it|test|describe)(?:\.(?!each)\w+(?:\([^)]*\))?)*|\b(?:it|test|describe)\.each\([^[\]()]*\)|[\])}]\s*(?:as const)?,?\s*\))\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*?)\1\s*,/g;

/** Returns the names of tests that are oblique, name persons or are too long. */
export function findObliqueTests(tree: Tree): string[] {
  return [...tree]
    .filter(([file]) => /^test\/.*\.ts$/.test(file))
    .flatMap(([file, text]) => [...text.matchAll(NAMED)].map(([, , name = '']) => ({ file, name })))
    .filter(({ name }) => isOblique(name.replace(IDS, '')))
    .map(({ file, name }) => `${file}: ${name}`);
}

function isOblique(name: string): boolean {
  const words = name.split(/\s+/).filter((word) => /\w/.test(word));
  return OBLIQUE.test(name) || PERSONS.test(name) || words.length > WORDS_MAX;
}
