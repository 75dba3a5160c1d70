import { NumberTable } from './number-table.ts';

/**
 * A back-off n-gram model of at most three words, read from the ARPA text format (Doug Paul and Janet Baker 1992; the
 * format of SRILM and KenLM). ARPA holds base-10 logarithms; everything here is natural.
 */
export interface LanguageModel {
  /** Natural-log probability of the word on its own; that of `<unk>` for words it does not know. */
  unigram(word: string): number;
  /** State before the first word. */
  readonly start: number;
  /** State after a word. */
  after(state: number, word: string): number;
  /** Natural-log probability of the word in this state. */
  score(state: number, word: string): number;
  /** Natural-log probability that the sentence ends in this state. */
  end(state: number): number;
}

const LN10 = Math.LN10;
const UNKNOWN = '<unk>';
const BEGIN = '<s>';
const END = '</s>';
/** Log probability of an unknown word in a model without `<unk>`: one in ten million. */
const UNKNOWN_LOG = Math.log(1e-7);

interface Grams {
  /** Numbers of the words; 0 stands for "none". */
  readonly numbers: ReadonlyMap<string, number>;
  readonly words: number;
  /** Natural-log probabilities, by order. */
  readonly score: readonly NumberTable[];
  readonly backoff: readonly NumberTable[];
}

/** Histories are numbers: `first * words + second`, where word 0 stands for "none". */
function key(words: number, history: number, word: number): number {
  return history * words + word;
}

/** Yields the lines of a text without a list of them: a language model has hundreds of thousands. */
function* linesOf(text: string): Generator<string> {
  for (let begin = 0; begin < text.length; ) {
    const newline = text.indexOf('\n', begin);
    const end = newline < 0 ? text.length : newline;
    yield text.slice(begin, end);
    begin = end + 1;
  }
}

/** Returns the number of n-grams of each order. */
function countsOf(arpa: string): number[] {
  const header = arpa.slice(0, arpa.indexOf('\\1-grams:'));
  return [1, 2, 3].map((order) => Number(new RegExp(`^ngram ${order}=(\\d+)`, 'm').exec(header)?.[1] ?? 0));
}

function parse(arpa: string): Grams {
  const numbers = new Map<string, number>([['', 0]]);
  const counts = countsOf(arpa);
  const [unigrams = 0] = counts;
  if (unigrams === 0) throw new Error('not an ARPA language model: no "ngram 1=" line');
  const words = unigrams + 2;
  const score = counts.map((count) => new NumberTable(count));
  const backoff = counts.map((count) => new NumberTable(count));
  let order = 0;
  for (const line of linesOf(arpa)) {
    if (line.startsWith('\\')) order = Number(/^\\([123])-grams:/.exec(line)?.[1] ?? 0);
    else if (order !== 0 && line !== '') {
      const [chance = '', gram = '', weight] = line.split('\t');
      if (order === 1 && !numbers.has(gram)) numbers.set(gram, numbers.size);
      const id = gram.split(' ').reduce((history, word) => key(words, history, numbers.get(word) ?? 0), 0);
      score[order - 1]?.set(id, Number(chance) * LN10);
      if (weight !== undefined) backoff[order - 1]?.set(id, Number(weight) * LN10);
    }
  }
  return { numbers, words, score, backoff };
}

export function createLanguageModel(arpa: string): LanguageModel {
  const { numbers, score, backoff, words } = parse(arpa);
  const unknown = numbers.get(UNKNOWN) ?? 0;
  const numberOf = (word: string) => numbers.get(word) ?? unknown;
  const [uni, bi, tri] = score as [NumberTable, NumberTable, NumberTable];
  const [uniWeight, biWeight] = backoff as [NumberTable, NumberTable];

  const scoreOf = (state: number, word: number): number => {
    const last = state % words;
    let carried = 0;
    if (state >= words) {
      const found = tri.get(key(words, state, word));
      if (found !== undefined) return found;
      carried += biWeight.get(state) ?? 0;
    }
    const found = bi.get(key(words, last, word));
    if (found !== undefined) return carried + found;
    return carried + (uniWeight.get(last) ?? 0) + (uni.get(word) ?? UNKNOWN_LOG);
  };

  return {
    unigram: (word) => uni.get(numberOf(word)) ?? UNKNOWN_LOG,
    start: numberOf(BEGIN),
    after: (state, word) => key(words, state % words, numberOf(word)),
    score: (state, word) => scoreOf(state, numberOf(word)),
    end: (state) => scoreOf(state, numbers.get(END) ?? unknown),
  };
}
