// A language model of a text, and its mixture with another.
import { BEGIN, chanceOf, END, type Gram, historyOf, type NgramModel, ORDERS, orderOf, UNKNOWN } from './arpa.ts';

/** N-grams of two and three words that occur less often carry no probability of their own. */
const KEEP = 2;

/** Counts of n-grams of a text, and of what follows each history. */
interface Counts {
  readonly grams: readonly Map<string, number>[];
  readonly follow: ReadonlyMap<string, { total: number; kinds: number }>;
}

function count(sentences: readonly (readonly string[])[]): Counts {
  const grams = Array.from({ length: ORDERS }, () => new Map<string, number>());
  for (const words of sentences) {
    const line = [BEGIN, ...words, END];
    for (let order = 1; order <= ORDERS; order++)
      for (let at = 0; at + order <= line.length; at++) {
        const gram = line.slice(at, at + order).join(' ');
        if (gram !== BEGIN) grams[order - 1]?.set(gram, (grams[order - 1]?.get(gram) ?? 0) + 1);
      }
  }
  const follow = new Map<string, { total: number; kinds: number }>();
  for (const [order, list] of grams.entries())
    for (const [gram, times] of list) {
      if (order > 0 && times < KEEP) continue;
      const history = historyOf(gram);
      const { total = 0, kinds = 0 } = follow.get(history) ?? {};
      follow.set(history, { total: total + times, kinds: kinds + 1 });
    }
  return { grams, follow };
}

/**
 * Returns a function that gives the probability of an n-gram's last word by a text: Witten-Bell interpolation of the
 * orders, and at the bottom an equal share for each of `words` words.
 */
function textModel({ grams, follow }: Counts, words: number): (gram: string) => number {
  const chance = (gram: string): number => {
    const order = orderOf(gram);
    if (order === 0) return 1 / words;
    const lower = chance(order === 1 ? '' : gram.slice(gram.indexOf(' ') + 1));
    const known = follow.get(historyOf(gram));
    if (!known) return lower;
    const times = grams[order - 1]?.get(gram) ?? 0;
    const own = order === 1 || times >= KEEP ? times : 0;
    return (own + known.kinds * lower) / (known.total + known.kinds);
  };
  return chance;
}

/** Weights of back-off that make the probabilities behind each history sum up to 1. */
function weigh(model: readonly Map<string, Gram>[]): void {
  for (let order = 1; order < ORDERS; order++) {
    const sums = new Map<string, { listed: number; lower: number }>();
    for (const [gram, { chance }] of model[order] as Map<string, Gram>) {
      const history = historyOf(gram);
      const { listed = 0, lower = 0 } = sums.get(history) ?? {};
      const behind = chanceOf(model, gram.slice(gram.indexOf(' ') + 1));
      sums.set(history, { listed: listed + 10 ** chance, lower: lower + 10 ** behind });
    }
    for (const [history, { listed, lower }] of sums) {
      const gram = model[order - 1]?.get(history);
      const backoff = Math.log10(Math.max(1e-9, 1 - listed) / Math.max(1e-9, 1 - lower));
      if (gram) model[order - 1]?.set(history, { ...gram, backoff: Math.min(0.5, backoff) });
    }
  }
}

/**
 * Mixes a model with that of a text: each probability is `weight` of the text's and the rest of the model's. Lists the
 * n-grams of both.
 */
export function mixModels(base: NgramModel, sentences: readonly (readonly string[])[], weight: number): NgramModel {
  const counts = count(sentences);
  const vocabulary = new Set([...(base[0]?.keys() ?? []), ...(counts.grams[0]?.keys() ?? []), UNKNOWN]);
  vocabulary.delete(BEGIN);
  const ofText = textModel(counts, vocabulary.size);
  const mixed = Array.from({ length: ORDERS }, () => new Map<string, Gram>());
  for (const [at, grams] of counts.grams.entries()) {
    const frequent = [...grams].filter(([, times]) => at === 0 || times >= KEEP).map(([gram]) => gram);
    for (const gram of new Set([...(base[at]?.keys() ?? []), ...frequent])) {
      const isNew = at === 0 && !base[0]?.has(gram);
      const before = isNew ? 0 : 10 ** chanceOf(base, gram);
      const chance = Math.log10(weight * ofText(gram) + (1 - weight) * before);
      mixed[at]?.set(gram, { chance, backoff: 0 });
    }
  }
  if (!mixed[0]?.has(BEGIN)) mixed[0]?.set(BEGIN, { chance: 0, backoff: 0 });
  weigh(mixed);
  return mixed;
}
