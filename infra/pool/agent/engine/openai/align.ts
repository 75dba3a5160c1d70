/** A piece of a transcript with its time in seconds and, where the server tells it, its confidence, 0 to 1. */
export interface Span {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly confidence?: number | undefined;
}

/** Letters, digits and marks: servers differ in spaces, case and punctuation between a text and its words. */
const lettersOf = (text: string): string[] => [
  ...text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]/gu, ''),
];

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Finds the time and confidence of each word in spans of the same text; inside a span each letter takes the same share.
 * A word without letters takes no time. Returns `undefined` when there are no letters, or the words have others than the
 * spans.
 */
export function alignWords(words: readonly string[], spans: readonly Span[]): Omit<Span, 'text'>[] | undefined {
  const spelled = words.map(lettersOf);
  const letters = spans.flatMap((span) =>
    lettersOf(span.text).map((letter, i, { length }) => {
      const at = (place: number) => span.start + ((span.end - span.start) * place) / length;
      return { letter, start: at(i), end: at(i + 1), confidence: span.confidence };
    }),
  );
  if (letters.length === 0 || spelled.flat().join('') !== letters.map(({ letter }) => letter).join(''))
    return undefined;
  let taken = 0;
  return spelled.map(({ length }) => {
    const own = letters.slice(taken, taken + length);
    const before = letters[taken - 1]?.end ?? letters[0]?.start ?? 0;
    taken += length;
    const known = own.flatMap(({ confidence }) => (confidence === undefined ? [] : [confidence]));
    return {
      start: own[0]?.start ?? before,
      end: own.at(-1)?.end ?? before,
      ...(known.length > 0 && known.length === length && { confidence: mean(known) }),
    };
  });
}
