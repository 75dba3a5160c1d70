import type { LanguageModel } from './language-model.ts';
import type { Lexicon } from './lexicon.ts';
import type { TermTree } from './terms.ts';

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
  /** `NO_TOKEN` where the vocabulary has none. */
  readonly wordBoundary: number;
  /** Text of each token, and whether it is a word by itself: of a script without spaces. */
  readonly texts: readonly string[];
  readonly unspaced: readonly boolean[];
  readonly lexicon?: Lexicon;
  readonly model?: LanguageModel;
  readonly terms?: TermTree | undefined;
  readonly settings: BeamSettings;
}

const attached = /^[\p{M}\p{P}]/u;

/** Reports whether a token ends the word before it: a boundary, or the next character of a script without spaces. */
export function beginsWord({ wordBoundary, texts, unspaced }: BeamParts, before: number, token: number): boolean {
  if (token === wordBoundary) return true;
  // Vowel signs and punctuation belong to the character before.
  return (unspaced[token] || unspaced[before] || false) && !attached.test(texts[token] ?? '');
}

/** Frame of a token on the likeliest path that says the letters before it. */
export interface Trail {
  readonly firstFrame: number;
  readonly lastFrame: number;
  /** Best natural-log probability of the token in these frames. */
  readonly logProb: number;
  /** The token before it; cut off where nothing can change any more. */
  before: Trail | undefined;
}

export const NONE = Number.NEGATIVE_INFINITY;

/** No prefix, no candidate. */
export const NO_PREFIX = -1;

/** Prefixes a tree has room for at first: few utterances ever need more. */
const INITIAL_CAPACITY = 64;

const FLOATS = [
  'state',
  'finished',
  'bias',
  'lift',
  'closedFinished',
  'closedState',
  'blank',
  'sounding',
  'blankPath',
  'soundingPath',
] as const;
const INTS = ['parent', 'child', 'sibling', 'token', 'depth', 'node', 'letters', 'term', 'frame', 'candidate'] as const;
const BYTES = ['closed', 'kept'] as const;
const PLACE_BYTES = 8 * FLOATS.length + 4 * INTS.length + BYTES.length;

type Columns = Record<(typeof FLOATS)[number], Float64Array> &
  Record<(typeof INTS)[number], Int32Array> &
  Record<(typeof BYTES)[number], Uint8Array>;

/**
 * Columns with `capacity` entries, in one piece of memory: with hundreds of streams in turn each row finds its columns cold,
 * and twenty pieces for each utterance are what a collector has to look after.
 */
function layColumns(capacity: number): Columns {
  const memory = new ArrayBuffer(capacity * PLACE_BYTES);
  const columns: Partial<Columns> = {};
  let at = 0;
  for (const name of FLOATS) {
    columns[name] = new Float64Array(memory, at, capacity);
    at += 8 * capacity;
  }
  for (const name of INTS) {
    columns[name] = new Int32Array(memory, at, capacity);
    at += 4 * capacity;
  }
  for (const name of BYTES) {
    columns[name] = new Uint8Array(memory, at, capacity);
    at += capacity;
  }
  return columns as Columns;
}

/**
 * The letters that hypotheses say, as a tree: prefixes that are hypotheses or lead to some. Everything but the acoustic
 * scores follows from the prefix, so prefixes are what merges. A prefix is a number, and what is known of it stands in
 * columns: every stream makes and drops hundreds of them each second, and objects would have to be cleaned up.
 */
export class Prefixes {
  /** Parent; `NO_PREFIX` when the prefix is final. */
  parent: Int32Array;
  child: Int32Array;
  sibling: Int32Array;
  token: Int32Array;
  /** Tokens from the beginning of the utterance. */
  depth: Int32Array;
  /** Place in the lexicon, or -1 when the word is being spelled letter by letter. */
  node: Int32Array;
  /** Letters of the current word; 0 right after a boundary. */
  letters: Int32Array;
  /** State of the language model. */
  state: Float64Array;
  /** Weighted scores of finished words. */
  finished: Float64Array;
  /** `finished` plus what the current word promises; ranks hypotheses. */
  bias: Float64Array;
  /** Node in the tree of terms, or -1; 0 before a word that may begin one. */
  term: Int32Array;
  /** Score of a term that has not ended; ranks hypotheses with `bias`. */
  lift: Float64Array;
  /** State with the current word ended, once computed (`closed`). */
  closed: Uint8Array;
  closedFinished: Float64Array;
  closedState: Float64Array;
  /** Whether it is one of the hypotheses. */
  kept: Uint8Array;
  /** Log probability of the frames so far, over all paths, ending in blank or in the last token. */
  blank: Float64Array;
  sounding: Float64Array;
  /** Scores of the likeliest path alone, and the frames of its tokens. */
  blankPath: Float64Array;
  soundingPath: Float64Array;
  readonly blankTrail: (Trail | undefined)[] = [];
  readonly soundingTrail: (Trail | undefined)[] = [];
  /** Index of its candidate in the current frame. */
  frame: Int32Array;
  candidate: Int32Array;

  readonly #free: number[] = [];
  #used = 0;

  constructor() {
    const columns = layColumns(INITIAL_CAPACITY);
    this.parent = columns.parent;
    this.child = columns.child;
    this.sibling = columns.sibling;
    this.token = columns.token;
    this.depth = columns.depth;
    this.node = columns.node;
    this.letters = columns.letters;
    this.state = columns.state;
    this.finished = columns.finished;
    this.bias = columns.bias;
    this.term = columns.term;
    this.lift = columns.lift;
    this.closed = columns.closed;
    this.closedFinished = columns.closedFinished;
    this.closedState = columns.closedState;
    this.kept = columns.kept;
    this.blank = columns.blank;
    this.sounding = columns.sounding;
    this.blankPath = columns.blankPath;
    this.soundingPath = columns.soundingPath;
    this.frame = columns.frame;
    this.candidate = columns.candidate;
  }

  /** Adds a prefix without scores; `parent` may be `NO_PREFIX`. */
  add(parent: number, token: number): number {
    const id = this.#free.pop() ?? this.#used++;
    if (id === this.parent.length) this.#grow();
    this.parent[id] = parent;
    this.child[id] = NO_PREFIX;
    this.sibling[id] = NO_PREFIX;
    this.token[id] = token;
    this.depth[id] = 0;
    this.closed[id] = 0;
    this.kept[id] = 0;
    this.frame[id] = -1;
    if (parent !== NO_PREFIX) {
      this.sibling[id] = this.child[parent] as number;
      this.child[parent] = id;
      this.depth[id] = (this.depth[parent] as number) + 1;
    }
    return id;
  }

  /** The prefix with one token more, if the tree has it. */
  childOf(id: number, token: number): number {
    let at = this.child[id] as number;
    while (at !== NO_PREFIX && this.token[at] !== token) at = this.sibling[at] as number;
    return at;
  }

  /** Takes a prefix that leads to no hypothesis out of the tree, and all before it that led only to it. */
  drop(prefix: number): void {
    for (let at = prefix; at !== NO_PREFIX && this.child[at] === NO_PREFIX && !this.kept[at]; ) {
      const parent = this.parent[at] as number;
      if (parent === NO_PREFIX) return;
      if (this.child[parent] === at) this.child[parent] = this.sibling[at] as number;
      else {
        let before = this.child[parent] as number;
        while (before !== NO_PREFIX && this.sibling[before] !== at) before = this.sibling[before] as number;
        // It was dropped before.
        if (before === NO_PREFIX) return;
        this.sibling[before] = this.sibling[at] as number;
      }
      this.#forget(at);
      at = parent;
    }
  }

  /** Makes it the first of the tree; each prefix before it leads to no other. */
  cut(prefix: number): void {
    for (let at = this.parent[prefix] as number; at !== NO_PREFIX; ) {
      const parent = this.parent[at] as number;
      this.#forget(at);
      at = parent;
    }
    this.parent[prefix] = NO_PREFIX;
  }

  size(): number {
    return this.#used - this.#free.length;
  }

  #forget(id: number): void {
    this.blankTrail[id] = undefined;
    this.soundingTrail[id] = undefined;
    this.#free.push(id);
  }

  #grow(): void {
    const columns = layColumns(2 * this.parent.length);
    for (const name of FLOATS) {
      columns[name].set(this[name]);
      this[name] = columns[name];
    }
    for (const name of INTS) {
      columns[name].set(this[name]);
      this[name] = columns[name];
    }
    for (const name of BYTES) {
      columns[name].set(this[name]);
      this[name] = columns[name];
    }
  }
}
