/** Text and words of an interim result. */
interface InterimText {
  readonly text: string;
  readonly words: readonly { readonly word: string }[];
  readonly stable: number;
}

/** Returns the part of the text that no later audio changes: up to the end of the last stable word. */
export function stableText({ text, words, stable }: InterimText): string {
  let end = 0;
  for (const { word } of words.slice(0, stable)) {
    const at = text.indexOf(word, end);
    // A word that the text writes otherwise has no known end.
    if (at < 0) break;
    end = at + word.length;
  }
  return text.slice(0, end);
}
