import { Candidates } from './candidates.ts';
import { createMeanings } from './meanings.ts';
import { type BeamParts, type BeamSettings, beginsWord, NO_PREFIX, NONE, Prefixes, type Trail } from './prefix.ts';

function logAdd(a: number, b: number): number {
  if (a === NONE) return b;
  if (b === NONE) return a;
  return a > b ? a + Math.log1p(Math.exp(b - a)) : b + Math.log1p(Math.exp(a - b));
}

/** Tokens that a hypothesis is extended by in a frame. In noise thousands of characters are about as likely. */
const TRIED_TOKENS = 64;

/** A token of a hypothesis and its time. */
export interface DecodedToken {
  readonly token: number;
  readonly trail: Trail;
}

/** Scratch buffer of all decodings: one frame is processed at a time. */
let shared = new Candidates(0);

/**
 * CTC prefix beam search (Hannun et al. 2014). The language model scores whole words, and estimates a word before its
 * end. A hypothesis is ranked by the sum over its paths; its likeliest path gives the times of its tokens. Hypotheses
 * with equal futures are merged. `onSettled` receives the prefix that all hypotheses share, in pieces that end at a word
 * boundary; later audio does not change it. Settled tokens are dropped, so the cost of a frame does not grow with the
 * length of the utterance.
 */
export class Beam {
  readonly #tree = new Prefixes();
  readonly #meanings: ReturnType<typeof createMeanings>;
  readonly #settings: BeamSettings;
  readonly #width: number;
  readonly #blank: number;
  readonly #parts: BeamParts;
  readonly #onSettled: (tokens: readonly DecodedToken[]) => void;
  #kept: number[];
  #frame = 0;
  /** Tokens that are likely enough in the frame, and how many. */
  readonly #tried: Int32Array;
  #tries = 0;
  /** The last prefix that all hypotheses share, and the last one of those that ends a word. */
  #fork: number;
  #trunk: number;

  constructor(parts: BeamParts, onSettled: (tokens: readonly DecodedToken[]) => void) {
    const { width, blank, settings } = parts;
    const tree = this.#tree;
    this.#meanings = createMeanings(parts, tree);
    this.#settings = settings;
    this.#width = width;
    this.#blank = blank;
    this.#parts = parts;
    this.#onSettled = onSettled;
    const root = this.#meanings.begin(blank);
    tree.blank[root] = 0;
    tree.sounding[root] = NONE;
    tree.blankPath[root] = 0;
    tree.soundingPath[root] = NONE;
    tree.kept[root] = 1;
    this.#kept = [root];
    this.#tried = new Int32Array(width);
    this.#fork = root;
    this.#trunk = root;
    const capacity = settings.beam * (Math.min(width, TRIED_TOKENS) + 1) + 1;
    if (shared.capacity < capacity) shared = new Candidates(capacity);
  }

  /** Takes `frames` rows of `width` natural-log probabilities. */
  readonly push = (logProbs: Float32Array, frames: number): void => {
    for (let row = 0; row < frames; row++) this.#advance(logProbs, row * this.#width);
  };

  /** Returns the best hypothesis behind what is settled. `ended`: the speaker has stopped. */
  best(ended: boolean): DecodedToken[] {
    const tree = this.#tree;
    let winner = this.#trunk;
    let top = NONE;
    for (const prefix of this.#kept) {
      const acoustic = logAdd(tree.blank[prefix] as number, tree.sounding[prefix] as number);
      const score =
        acoustic +
        (ended ? this.#meanings.endScore(prefix) : (tree.bias[prefix] as number) + (tree.lift[prefix] as number));
      if (score > top) [winner, top] = [prefix, score];
    }
    return this.#listTokens(winner, this.#trunk);
  }

  /** Returns how many prefixes are in memory: those of the hypotheses behind what is settled. */
  held(): number {
    return this.#tree.size();
  }

  /** Adds a candidate of which only the prefix is known. */
  #enter(prefix: number, token: number): number {
    const slot = shared.size++;
    shared.prefix[slot] = prefix;
    shared.token[slot] = token;
    shared.blank[slot] = NONE;
    shared.sounding[slot] = NONE;
    shared.blankPath[slot] = NONE;
    shared.soundingPath[slot] = NONE;
    shared.held[slot] = 0;
    return slot;
  }

  /** The candidate that a prefix of the tree is. */
  #touch(prefix: number): number {
    const tree = this.#tree;
    if (tree.frame[prefix] === this.#frame) return tree.candidate[prefix] as number;
    const slot = this.#enter(prefix, tree.token[prefix] as number);
    tree.frame[prefix] = this.#frame;
    tree.candidate[prefix] = slot;
    shared.node[slot] = tree.node[prefix] as number;
    shared.state[slot] = tree.state[prefix] as number;
    shared.bias[slot] = tree.bias[prefix] as number;
    shared.term[slot] = tree.term[prefix] as number;
    shared.lift[slot] = tree.lift[prefix] as number;
    return slot;
  }

  /** The candidate that a prefix is with one token more. */
  #extend(prefix: number, token: number): number {
    const tree = this.#tree;
    const child = tree.childOf(prefix, token);
    if (child !== NO_PREFIX) return this.#touch(child);
    const slot = this.#enter(NO_PREFIX, token);
    shared.parent[slot] = prefix;
    this.#meanings.extend(prefix, token, shared, slot);
    return slot;
  }

  /** `both`: what the prefix came to, in blank or sounding. */
  #stay(prefix: number, slot: number, both: number, chance: number): void {
    const tree = this.#tree;
    shared.blank[slot] = logAdd(shared.blank[slot] as number, both + chance);
    const fromSound = (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number);
    const path = ((fromSound ? tree.soundingPath[prefix] : tree.blankPath[prefix]) as number) + chance;
    if (path <= (shared.blankPath[slot] as number)) return;
    shared.blankPath[slot] = path;
    shared.blankTrail[slot] = fromSound ? tree.soundingTrail[prefix] : tree.blankTrail[prefix];
  }

  #hold(prefix: number, slot: number, chance: number): void {
    const tree = this.#tree;
    shared.sounding[slot] = logAdd(shared.sounding[slot] as number, (tree.sounding[prefix] as number) + chance);
    const path = (tree.soundingPath[prefix] as number) + chance;
    if (path < (shared.soundingPath[slot] as number) || path === NONE) return;
    shared.soundingPath[slot] = path;
    shared.held[slot] = 1;
  }

  #grow(prefix: number, token: number, both: number, chance: number): void {
    const tree = this.#tree;
    // Two equal tokens are two letters only with a blank between them.
    const parted = token === tree.token[prefix];
    const reach = parted ? (tree.blank[prefix] as number) : both;
    if (reach === NONE) return;
    const slot = this.#extend(prefix, token);
    shared.sounding[slot] = logAdd(shared.sounding[slot] as number, reach + chance);
    const fromSound = !parted && (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number);
    const path = ((fromSound ? tree.soundingPath[prefix] : tree.blankPath[prefix]) as number) + chance;
    if (path <= (shared.soundingPath[slot] as number)) return;
    shared.soundingPath[slot] = path;
    shared.before[slot] = fromSound ? tree.soundingTrail[prefix] : tree.blankTrail[prefix];
    shared.held[slot] = 0;
  }

  /** The candidates that go on as hypotheses, the best first. */
  #choose(): number[] {
    for (let slot = 0; slot < shared.size; slot++) {
      const acoustic = logAdd(shared.blank[slot] as number, shared.sounding[slot] as number);
      shared.score[slot] = acoustic + (shared.bias[slot] as number) + (shared.lift[slot] as number);
    }
    const likely = shared.rank(this.#settings.giveUp);
    const chosen: number[] = [];
    for (let at = 0; at < likely && chosen.length < this.#settings.beam; at++) {
      const slot = shared.order[at] as number;
      let outdone = false;
      for (let i = 0; i < chosen.length && !outdone; i++) outdone = shared.isOutdone(slot, chosen[i] as number);
      if (!outdone) chosen.push(slot);
    }
    return chosen;
  }

  /** The prefix of a candidate that was chosen. */
  #plant(slot: number): number {
    const tree = this.#tree;
    const known = shared.prefix[slot] as number;
    if (known !== NO_PREFIX) return known;
    const prefix = tree.add(shared.parent[slot] as number, shared.token[slot] as number);
    tree.node[prefix] = shared.node[slot] as number;
    tree.letters[prefix] = shared.letters[slot] as number;
    tree.state[prefix] = shared.state[slot] as number;
    tree.finished[prefix] = shared.finished[slot] as number;
    tree.bias[prefix] = shared.bias[slot] as number;
    tree.term[prefix] = shared.term[slot] as number;
    tree.lift[prefix] = shared.lift[slot] as number;
    return prefix;
  }

  /** Moves the values of a candidate to its prefix at the end of a frame. */
  #settleFrame(prefix: number, slot: number, logProb: number): void {
    const tree = this.#tree;
    const path = shared.soundingPath[slot] as number;
    tree.blank[prefix] = shared.blank[slot] as number;
    tree.sounding[prefix] = shared.sounding[slot] as number;
    tree.blankPath[prefix] = shared.blankPath[slot] as number;
    tree.blankTrail[prefix] = shared.blankTrail[slot];
    tree.soundingPath[prefix] = path;
    if (path === NONE) {
      tree.soundingTrail[prefix] = undefined;
      return;
    }
    const held = shared.held[slot] ? tree.soundingTrail[prefix] : undefined;
    tree.soundingTrail[prefix] = {
      firstFrame: held?.firstFrame ?? this.#frame,
      lastFrame: this.#frame,
      logProb: held ? Math.max(held.logProb, logProb) : logProb,
      before: held ? held.before : shared.before[slot],
    };
  }

  #bestTrail(prefix: number): Trail | undefined {
    const tree = this.#tree;
    return (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number)
      ? tree.soundingTrail[prefix]
      : tree.blankTrail[prefix];
  }

  /** Tokens of the prefix behind `after`, which leads to it. */
  #listTokens(prefix: number, after: number): DecodedToken[] {
    const tree = this.#tree;
    const tokens: DecodedToken[] = [];
    let trail = this.#bestTrail(prefix);
    for (let at = prefix; at !== after && tree.parent[at] !== NO_PREFIX && trail; trail = trail.before) {
      tokens.push({ token: tree.token[at] as number, trail });
      at = tree.parent[at] as number;
    }
    return tokens.reverse();
  }

  /** Moves the trunk up to where hypotheses part, reports what that settles, and cuts off what led there. */
  #settle(): void {
    const tree = this.#tree;
    let word = this.#trunk;
    while (!tree.kept[this.#fork]) {
      const only = tree.child[this.#fork] as number;
      if (only === NO_PREFIX || tree.sibling[only] !== NO_PREFIX) break;
      // The word in front of the next one has ended.
      if (beginsWord(this.#parts, tree.token[this.#fork] as number, tree.token[only] as number)) word = this.#fork;
      this.#fork = only;
      if (tree.token[only] === this.#parts.wordBoundary) word = only;
    }
    const best = this.#kept[0];
    if (word === this.#trunk || best === undefined) return;
    this.#onSettled(
      this.#listTokens(best, this.#trunk).slice(0, (tree.depth[word] as number) - (tree.depth[this.#trunk] as number)),
    );
    this.#trunk = word;
    tree.cut(this.#trunk);
    for (const prefix of this.#kept) {
      for (const end of [tree.blankTrail[prefix], tree.soundingTrail[prefix]]) {
        let trail = end;
        const steps = (tree.depth[prefix] as number) - (tree.depth[this.#trunk] as number);
        for (let step = 0; step < steps; step++) trail = trail?.before;
        if (trail) trail.before = undefined;
      }
    }
  }

  #spread(prefix: number, rows: Float32Array, from: number): void {
    const tree = this.#tree;
    const slot = this.#touch(prefix);
    const token = tree.token[prefix] as number;
    const both = logAdd(tree.blank[prefix] as number, tree.sounding[prefix] as number);
    const { wordBoundary } = this.#parts;
    const silent = tree.letters[prefix] === 0;
    this.#stay(prefix, slot, both, rows[from + this.#blank] as number);
    if (token !== this.#blank) this.#hold(prefix, slot, rows[from + token] as number);
    for (let at = 0; at < this.#tries; at++) {
      const next = this.#tried[at] as number;
      const chance = rows[from + next] as number;
      // A boundary with no word before it says nothing: it counts as silence.
      if (next !== wordBoundary || !silent) this.#grow(prefix, next, both, chance);
      else if (next !== token) this.#stay(prefix, slot, both, chance);
    }
  }

  /** Lists the tokens that are likely enough in the row at `from`, and returns how many. */
  #tryTokens(rows: Float32Array, from: number): number {
    const tried = this.#tried;
    const { tokenFloor } = this.#settings;
    let tries = 0;
    for (let token = 0; token < this.#width; token++) {
      if (token !== this.#blank && (rows[from + token] as number) > tokenFloor) tried[tries++] = token;
    }
    if (tries <= TRIED_TOKENS) return tries;
    tried.subarray(0, tries).sort((a, b) => (rows[from + b] as number) - (rows[from + a] as number));
    return TRIED_TOKENS;
  }

  /** Decodes one row, which begins at `from`. */
  #advance(rows: Float32Array, from: number): void {
    const tree = this.#tree;
    this.#tries = this.#tryTokens(rows, from);
    for (let at = 0; at < this.#kept.length; at++) this.#spread(this.#kept[at] as number, rows, from);
    const chosen = this.#choose();
    for (let at = 0; at < this.#kept.length; at++) tree.kept[this.#kept[at] as number] = 0;
    // All of them before anything is dropped: a number is not reused while a hypothesis may still refer to it.
    this.#kept = chosen.map((slot) => this.#plant(slot));
    for (let at = 0; at < this.#kept.length; at++) {
      tree.kept[this.#kept[at] as number] = 1;
      const prefix = this.#kept[at] as number;
      this.#settleFrame(prefix, chosen[at] as number, rows[from + (tree.token[prefix] as number)] as number);
    }
    for (let slot = 0; slot < shared.size; slot++) {
      if (shared.prefix[slot] !== NO_PREFIX) tree.drop(shared.prefix[slot] as number);
    }
    shared.clear();
    this.#settle();
    this.#frame++;
  }
}

export const createBeam = (parts: BeamParts, onSettled: (tokens: readonly DecodedToken[]) => void): Beam =>
  new Beam(parts, onSettled);
