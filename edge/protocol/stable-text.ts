/** What an interim result says of its words. */
interface Hint {
  readonly text: string;
  readonly words: readonly { readonly word: string }[];
  readonly stable: number;
}

/** The beginning of the text that no later sound can change: up to the end of its last stable word. */
export function stableText({ text, words, stable }: Hint): string {
  let end = 0;
  for (const { word } of words.slice(0, stable)) {
    const at = text.indexOf(word, end);
    // Words that are written otherwise in the text say nothing about where they end.
    if (at < 0) break;
    end = at + word.length;
  }
  return text.slice(0, end);
}
