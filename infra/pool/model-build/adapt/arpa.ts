// N-gram models in the ARPA text format (the format of SRILM and KenLM), of at most three words.

export const BEGIN = '<s>';
export const END = '</s>';
export const UNKNOWN = '<unk>';
export const ORDERS = 3;

/** Log10 of `<s>`, which is never predicted. */
const NEVER = -99;

/** Log10 probability of an n-gram, and the log10 weight of the shorter ones behind it. */
export interface Gram {
  readonly chance: number;
  readonly backoff: number;
}

/** N-grams of each order, by their words with spaces between. */
export type NgramModel = readonly Map<string, Gram>[];

export function readArpa(text: string): NgramModel | undefined {
  const model = Array.from({ length: ORDERS }, () => new Map<string, Gram>());
  let order = 0;
  for (const line of text.split('\n')) {
    const section = /^\\(\d)-grams:/.exec(line);
    if (section) order = Number(section[1]);
    else if (line !== '' && !line.startsWith('\\')) {
      const [chance = '', words = '', backoff = '0'] = line.split('\t');
      model[order - 1]?.set(words, { chance: Number(chance), backoff: Number(backoff) });
    }
  }
  return model[0]?.has(END) ? model : undefined;
}

export function writeArpa(model: NgramModel): string {
  const lines = ['\\data\\', ...model.map((grams, at) => `ngram ${at + 1}=${grams.size}`)];
  for (const [at, grams] of model.entries()) {
    lines.push('', `\\${at + 1}-grams:`);
    for (const [words, { chance, backoff }] of [...grams].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const weight = at + 1 < ORDERS && backoff !== 0 ? `\t${backoff.toFixed(3)}` : '';
      lines.push(`${words === BEGIN ? NEVER : chance.toFixed(3)}\t${words}${weight}`);
    }
  }
  return [...lines, '', '\\end\\', ''].join('\n');
}

/** Returns the words of an n-gram but the last, and but the first. */
export const historyOf = (words: string): string => words.slice(0, Math.max(0, words.lastIndexOf(' ')));
const shorter = (words: string): string => words.slice(words.indexOf(' ') + 1);
export const orderOf = (words: string): number => (words === '' ? 0 : words.split(' ').length);

/** Returns the log10 probability of the last word after the others, backing off where the n-gram is not listed. */
export function chanceOf(model: NgramModel, words: string): number {
  const order = orderOf(words);
  const found = model[order - 1]?.get(words);
  if (found) return found.chance;
  if (order === 1) return model[0]?.get(UNKNOWN)?.chance ?? -7;
  return (model[order - 2]?.get(historyOf(words))?.backoff ?? 0) + chanceOf(model, shorter(words));
}
