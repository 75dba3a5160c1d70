import type { LanguageModel } from './language-model.ts';
import type { Lexicon } from './lexicon.ts';

export interface BeamSettings {
  /** Hypotheses kept after each frame. */
  readonly beam: number;
  /** Hypotheses this much less likely than the best (natural log) are given up. */
  readonly giveUp: number;
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

/** Where a token sounds, on the likeliest path that says the letters before it. */
export interface Trail {
  readonly firstFrame: number;
  readonly lastFrame: number;
  /** Best natural-log probability of the token in these frames. */
  readonly logProb: number;
  /** The token before it; cut off where nothing can change any more. */
  before: Trail | undefined;
}

/** Letters so far. Everything but the acoustic scores follows from the prefix, so prefixes are what merges. */
export interface Prefix {
  /** Cut off where nothing can change any more. */
  parent: Prefix | undefined;
  readonly token: number;
  /** Tokens from the beginning of the utterance. */
  readonly depth: number;
  /** Those that are hypotheses, or lead to some; most prefixes never have any. */
  children: Map<number, Prefix> | undefined;
  /** Whether it is one of the hypotheses. */
  kept: boolean;
  /** Place in the lexicon, or -1 when the word is being spelled letter by letter. */
  readonly node: number;
  /** Letters of the current word; 0 right after a boundary. */
  readonly letters: number;
  readonly state: number;
  /** Weighted scores of finished words. */
  readonly finished: number;
  /** `finished` plus what the current word promises; ranks hypotheses. */
  readonly bias: number;
  /** Log probability of the frames so far, over all paths, ending in blank or in the last token. */
  blank: number;
  sounding: number;
  /** The same of the likeliest path alone, and where its tokens sound. */
  blankPath: number;
  soundingPath: number;
  blankTrail: Trail | undefined;
  soundingTrail: Trail | undefined;
  /** The same after the frame being heard. */
  readonly next: {
    frame: number;
    blank: number;
    sounding: number;
    /** Ranks it among what the frame has left. */
    score: number;
    blankPath: number;
    soundingPath: number;
    blankTrail: Trail | undefined;
    /** What the likeliest path has before the last token; `held` when that token was sounding already. */
    before: Trail | undefined;
    held: boolean;
  };
}

export const NONE = Number.NEGATIVE_INFINITY;

type Meaning = Pick<Prefix, 'parent' | 'token' | 'depth' | 'node' | 'letters' | 'state' | 'finished' | 'bias'>;

/** Written out, as copying the meaning costs more than all the rest of a new prefix. */
const fresh = ({ parent, token, depth, node, letters, state, finished, bias }: Meaning): Prefix => ({
  parent,
  token,
  depth,
  children: undefined,
  kept: false,
  node,
  letters,
  state,
  finished,
  bias,
  blank: NONE,
  sounding: NONE,
  blankPath: NONE,
  soundingPath: NONE,
  blankTrail: undefined,
  soundingTrail: undefined,
  next: {
    frame: -1,
    blank: NONE,
    sounding: NONE,
    score: NONE,
    blankPath: NONE,
    soundingPath: NONE,
    blankTrail: undefined,
    before: undefined,
    held: false,
  },
});

/** The tree of prefixes: what is worth saying next, by lexicon and language model. */
export function createTree(parts: BeamParts) {
  const { blank, wordBoundary, lexicon, model, settings } = parts;

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
  const spelled = (prefix: Prefix) => prefix.bias - prefix.finished;
  /** Penalty carried by a word that has left the lexicon: it grows with every letter. */
  const spelledBias = (prefix: Prefix) =>
    prefix.node >= 0
      ? settings.unknownWord + settings.unknownLetter
      : prefix.bias - prefix.finished + settings.unknownLetter;

  /** What the prefix means with its current word ended. */
  const close = (prefix: Prefix): { finished: number; state: number } => {
    const { score, state } = scoreWord(prefix);
    return { finished: prefix.finished + score + (prefix.node < 0 && lexicon ? spelled(prefix) : 0), state };
  };

  return {
    root: (): Prefix =>
      fresh({
        parent: undefined,
        token: blank,
        depth: 0,
        node: 0,
        letters: 0,
        state: model?.start ?? 0,
        finished: 0,
        bias: 0,
      }),

    /** The prefix with one token more; it stays in the tree until `drop`. */
    extend(prefix: Prefix, token: number): Prefix {
      const existing = prefix.children?.get(token);
      if (existing) return existing;
      let child: Prefix;
      const depth = prefix.depth + 1;
      if (token === wordBoundary) {
        const { finished, state } = close(prefix);
        child = fresh({ parent: prefix, token, depth, node: 0, letters: 0, state, finished, bias: finished });
      } else {
        const node = lexicon && prefix.node >= 0 ? lexicon.step(prefix.node, token) : lexicon ? -1 : 0;
        const letters = prefix.letters + 1;
        const { state, finished } = prefix;
        const left = lexicon && node < 0 ? spelledBias(prefix) : promise(node);
        child = fresh({ parent: prefix, token, depth, node, letters, state, finished, bias: finished + left });
      }
      prefix.children ??= new Map();
      prefix.children.set(token, child);
      return child;
    },

    /** Natural-log score of the words when the speaker has stopped here. */
    endScore(prefix: Prefix): number {
      const { finished, state } = prefix.letters > 0 ? close(prefix) : prefix;
      return finished + (model ? settings.modelWeight * model.end(state) : 0);
    },

    /**
     * Whether the worse of two prefixes will not win again, as the better one goes on in the same ways at no higher
     * price: only words before the last two differ, or letters of a word that the lexicon does not have. Paths that might
     * still come in from shorter prefixes are not waited for. Asked while a frame is being heard.
     */
    isOutdone: (worse: Prefix, better: Prefix): boolean =>
      worse.state === better.state &&
      worse.node === better.node &&
      worse.token === better.token &&
      worse.next.blank + worse.bias <= better.next.blank + better.bias &&
      worse.next.sounding + worse.bias <= better.next.sounding + better.bias,

    /** Takes a prefix that leads to no hypothesis out of the tree, and all before it that led only to it. */
    drop(prefix: Prefix): void {
      for (let at: Prefix | undefined = prefix; at && !at.kept && !at.children?.size; at = at.parent) {
        at.parent?.children?.delete(at.token);
      }
    },
  };
}
