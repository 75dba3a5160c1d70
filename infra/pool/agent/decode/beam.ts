import type { LanguageModel } from './language-model.ts';
import type { Lexicon } from './lexicon.ts';

export interface BeamSettings {
  /** Hypotheses kept after each frame. */
  readonly beam: number;
  /** Tokens less likely than this (natural log) in a frame are not tried. */
  readonly tokenFloor: number;
  /** Weight of the language model against the network. */
  readonly modelWeight: number;
  /** Natural-log bonus for each finished word, against the model's liking for few words. */
  readonly wordBonus: number;
  /** Natural-log penalty of a word outside the lexicon, and of each of its letters beyond the known part. */
  readonly unknownWord: number;
  readonly unknownLetter: number;
}

export interface BeamParts {
  readonly width: number;
  readonly blank: number;
  readonly wordBoundary: number;
  readonly lexicon?: Lexicon;
  readonly model?: LanguageModel;
  readonly settings: BeamSettings;
}

/** Letters so far. Everything but the two acoustic scores follows from the prefix, so prefixes are what merges. */
interface Prefix {
  readonly parent: Prefix | undefined;
  readonly token: number;
  readonly children: Map<number, Prefix>;
  /** Place in the lexicon, or -1 when the word is being spelled letter by letter. */
  readonly node: number;
  /** Letters of the current word; 0 right after a boundary. */
  readonly letters: number;
  readonly state: number;
  /** Weighted scores of finished words. */
  readonly finished: number;
  /** `finished` plus what the current word promises; ranks hypotheses. */
  readonly bias: number;
  /** Log probability of the frames so far, ending in blank or in the last token. */
  blank: number;
  sounding: number;
  nextBlank: number;
  nextToken: number;
  touched: number;
}

const NONE = Number.NEGATIVE_INFINITY;

function logAdd(a: number, b: number): number {
  if (a === NONE) return b;
  if (b === NONE) return a;
  return a > b ? a + Math.log1p(Math.exp(b - a)) : b + Math.log1p(Math.exp(a - b));
}

/** CTC prefix beam search (Hannun et al. 2014) with the language model applied at word ends and promised inside words. */
export function createBeam(parts: BeamParts) {
  const { width, blank, wordBoundary, lexicon, model, settings } = parts;
  const scoreWord = (prefix: Prefix): { score: number; state: number } => {
    const known = lexicon ? lexicon.wordAt(prefix.node) : -1;
    const word = known >= 0 ? (lexicon?.words[known] ?? '') : '<unk>';
    const state = model ? model.after(prefix.state, word) : 0;
    const language = model ? settings.modelWeight * model.score(prefix.state, word) : 0;
    // A word that stops in the middle of the lexicon was not penalised on the way.
    const stopped = lexicon && known < 0 && prefix.node >= 0 ? settings.unknownWord : 0;
    return { score: language + settings.wordBonus + stopped, state };
  };
  const promise = (node: number) => (lexicon && model && node >= 0 ? settings.modelWeight * lexicon.promise(node) : 0);

  const fresh = (
    over: Pick<Prefix, 'parent' | 'token' | 'node' | 'letters' | 'state' | 'finished' | 'bias'>,
  ): Prefix => ({
    ...over,
    children: new Map(),
    blank: NONE,
    sounding: NONE,
    nextBlank: NONE,
    nextToken: NONE,
    touched: -1,
  });

  function extend(prefix: Prefix, token: number): Prefix {
    const existing = prefix.children.get(token);
    if (existing) return existing;
    let child: Prefix;
    if (token === wordBoundary) {
      const { score, state } = scoreWord(prefix);
      const finished = prefix.finished + score + (prefix.node < 0 && lexicon ? spelled(prefix) : 0);
      child = fresh({ parent: prefix, token, node: 0, letters: 0, state, finished, bias: finished });
    } else {
      const node = lexicon && prefix.node >= 0 ? lexicon.step(prefix.node, token) : lexicon ? -1 : 0;
      const letters = prefix.letters + 1;
      const { state, finished } = prefix;
      const left = lexicon && node < 0 ? spelledBias(prefix) : promise(node);
      child = fresh({ parent: prefix, token, node, letters, state, finished, bias: finished + left });
    }
    prefix.children.set(token, child);
    return child;
  }
  /** Penalty carried by a word that has left the lexicon: it grows with every letter. */
  const spelledBias = (prefix: Prefix) =>
    prefix.node >= 0
      ? settings.unknownWord + settings.unknownLetter
      : prefix.bias - prefix.finished + settings.unknownLetter;
  const spelled = (prefix: Prefix) => prefix.bias - prefix.finished;

  const root = fresh({
    parent: undefined,
    token: blank,
    node: 0,
    letters: 0,
    state: model?.start ?? 0,
    finished: 0,
    bias: 0,
  });
  root.blank = 0;
  let kept: Prefix[] = [root];
  let frame = 0;

  function advance(row: Float32Array) {
    const seen: Prefix[] = [];
    const touch = (prefix: Prefix) => {
      if (prefix.touched === frame) return;
      prefix.touched = frame;
      prefix.nextBlank = NONE;
      prefix.nextToken = NONE;
      seen.push(prefix);
    };
    const tried: number[] = [];
    for (let token = 0; token < width; token++) {
      if (token !== blank && (row[token] as number) > settings.tokenFloor) tried.push(token);
    }
    for (const prefix of kept) {
      const total = logAdd(prefix.blank, prefix.sounding);
      touch(prefix);
      prefix.nextBlank = logAdd(prefix.nextBlank, total + (row[blank] as number));
      if (prefix.parent) prefix.nextToken = logAdd(prefix.nextToken, prefix.sounding + (row[prefix.token] as number));
      for (const token of tried) {
        const chance = row[token] as number;
        // A boundary with no word before it says nothing: it counts as silence.
        if (token === wordBoundary && prefix.letters === 0) {
          if (token !== prefix.token) prefix.nextBlank = logAdd(prefix.nextBlank, total + chance);
          continue;
        }
        const reach = token === prefix.token && prefix.parent ? prefix.blank : total;
        if (reach === NONE) continue;
        const child = extend(prefix, token);
        touch(child);
        child.nextToken = logAdd(child.nextToken, reach + chance);
      }
    }
    for (const prefix of seen) {
      prefix.blank = prefix.nextBlank;
      prefix.sounding = prefix.nextToken;
    }
    const rank = (prefix: Prefix) => logAdd(prefix.blank, prefix.sounding) + prefix.bias;
    const ranked = seen.map((prefix) => ({ prefix, score: rank(prefix) })).sort((a, b) => b.score - a.score);
    kept = ranked.slice(0, settings.beam).map(({ prefix }) => prefix);
    frame++;
  }

  function spell(prefix: Prefix): number[] {
    const tokens: number[] = [];
    for (let at: Prefix | undefined = prefix; at?.parent; at = at.parent) tokens.push(at.token);
    return tokens.reverse();
  }

  return {
    /** Takes `frames` rows of `width` natural-log probabilities. */
    push(logProbs: Float32Array, frames: number) {
      for (let row = 0; row < frames; row++) advance(logProbs.subarray(row * width, (row + 1) * width));
    },
    /** Tokens of the best hypothesis, blanks and repeats gone. `ended`: the speaker has stopped. */
    best(ended: boolean): number[] {
      const total = (prefix: Prefix) => {
        const sound = logAdd(prefix.blank, prefix.sounding);
        if (!ended) return sound + prefix.bias;
        const closed = prefix.letters > 0 ? extend(prefix, wordBoundary) : prefix;
        return sound + closed.finished + (model ? settings.modelWeight * model.end(closed.state) : 0);
      };
      let winner = root;
      let top = NONE;
      for (const prefix of kept) {
        const score = total(prefix);
        if (score > top) [winner, top] = [prefix, score];
      }
      return spell(winner);
    },
  };
}
