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
  readonly numbers: Map<string, number>;
  readonly score: Map<number, number>[];
  readonly backoff: Map<number, number>[];
}

/** Histories are numbers: `first * words + second`, where word 0 stands for "none". */
function key(words: number, history: number, word: number): number {
  return history * words + word;
}

function parse(arpa: string): Grams & { words: number } {
  const numbers = new Map<string, number>([['', 0]]);
  const score: Map<number, number>[] = [new Map(), new Map(), new Map()];
  const backoff: Map<number, number>[] = [new Map(), new Map()];
  const counted = /ngram 1=(\d+)/.exec(arpa);
  if (!counted) throw new Error('not an ARPA language model: no "ngram 1=" line');
  const words = Number(counted[1]) + 2;
  let order = 0;
  for (const line of arpa.split('\n')) {
    const section = /^\\(\d)-grams:/.exec(line);
    if (section) order = Number(section[1]);
    else if (order >= 1 && order <= 3 && line !== '' && !line.startsWith('\\')) {
      const [chance = '', gram = '', weight] = line.split('\t');
      const ids = gram.split(' ').map((word) => {
        if (order === 1 && !numbers.has(word)) numbers.set(word, numbers.size);
        return numbers.get(word) ?? 0;
      });
      const id = ids.reduce((history, word) => key(words, history, word), 0);
      score[order - 1]?.set(id, Number(chance) * LN10);
      if (weight !== undefined) backoff[order - 1]?.set(id, Number(weight) * LN10);
    }
  }
  return { numbers, score, backoff, words };
}

export function createLanguageModel(arpa: string): LanguageModel {
  const { numbers, score, backoff, words } = parse(arpa);
  const unknown = numbers.get(UNKNOWN) ?? 0;
  const numberOf = (word: string) => numbers.get(word) ?? unknown;
  const [uni, bi, tri] = score as [Map<number, number>, Map<number, number>, Map<number, number>];
  const [uniWeight, biWeight] = backoff as [Map<number, number>, Map<number, number>];

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
