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

export const NONE = Number.NEGATIVE_INFINITY;

/** No prefix, no candidate. */
export const NOBODY = -1;

/** Prefixes a tree has room for at first: few utterances ever need more. */
const ROOM = 64;

function longer<T extends Int32Array | Uint8Array | Float64Array>(column: T, length: number): T {
  const grown = new (column.constructor as new (length: number) => T)(length);
  grown.set(column);
  return grown;
}

/**
 * The letters that hypotheses say, as a tree: prefixes that are hypotheses or lead to some. Everything but the acoustic
 * scores follows from the prefix, so prefixes are what merges. A prefix is a number, and what is known of it stands in
 * columns: every stream makes and drops hundreds of them each second, and objects would have to be cleaned up.
 */
export class Prefixes {
  /** `NOBODY` where nothing can change any more. */
  parent = new Int32Array(ROOM);
  child = new Int32Array(ROOM);
  sibling = new Int32Array(ROOM);
  token = new Int32Array(ROOM);
  /** Tokens from the beginning of the utterance. */
  depth = new Int32Array(ROOM);
  /** Place in the lexicon, or -1 when the word is being spelled letter by letter. */
  node = new Int32Array(ROOM);
  /** Letters of the current word; 0 right after a boundary. */
  letters = new Int32Array(ROOM);
  /** Of the language model. */
  state = new Float64Array(ROOM);
  /** Weighted scores of finished words. */
  finished = new Float64Array(ROOM);
  /** `finished` plus what the current word promises; ranks hypotheses. */
  bias = new Float64Array(ROOM);
  /** The same with the current word ended, once somebody has asked (`closed`). */
  closed = new Uint8Array(ROOM);
  closedFinished = new Float64Array(ROOM);
  closedState = new Float64Array(ROOM);
  /** Whether it is one of the hypotheses. */
  kept = new Uint8Array(ROOM);
  /** Log probability of the frames so far, over all paths, ending in blank or in the last token. */
  blank = new Float64Array(ROOM);
  sounding = new Float64Array(ROOM);
  /** The same of the likeliest path alone, and where its tokens sound. */
  blankPath = new Float64Array(ROOM);
  soundingPath = new Float64Array(ROOM);
  readonly blankTrail: (Trail | undefined)[] = [];
  readonly soundingTrail: (Trail | undefined)[] = [];
  /** Which candidate it is in the frame being heard. */
  frame = new Int32Array(ROOM);
  candidate = new Int32Array(ROOM);

  readonly #free: number[] = [];
  #used = 0;

  /** A prefix that nothing is known of but where it stands; `parent` may be `NOBODY`. */
  add(parent: number, token: number): number {
    const id = this.#free.pop() ?? this.#used++;
    if (id === this.parent.length) this.#grow();
    this.parent[id] = parent;
    this.child[id] = NOBODY;
    this.sibling[id] = NOBODY;
    this.token[id] = token;
    this.depth[id] = 0;
    this.closed[id] = 0;
    this.kept[id] = 0;
    this.frame[id] = -1;
    if (parent !== NOBODY) {
      this.sibling[id] = this.child[parent] as number;
      this.child[parent] = id;
      this.depth[id] = (this.depth[parent] as number) + 1;
    }
    return id;
  }

  /** The prefix with one token more, if the tree has it. */
  childOf(id: number, token: number): number {
    let at = this.child[id] as number;
    while (at !== NOBODY && this.token[at] !== token) at = this.sibling[at] as number;
    return at;
  }

  /** Takes a prefix that leads to no hypothesis out of the tree, and all before it that led only to it. */
  drop(prefix: number): void {
    for (let at = prefix; at !== NOBODY && this.child[at] === NOBODY && !this.kept[at]; ) {
      const parent = this.parent[at] as number;
      if (parent === NOBODY) return;
      if (this.child[parent] === at) this.child[parent] = this.sibling[at] as number;
      else {
        let before = this.child[parent] as number;
        while (before !== NOBODY && this.sibling[before] !== at) before = this.sibling[before] as number;
        // It was dropped before.
        if (before === NOBODY) return;
        this.sibling[before] = this.sibling[at] as number;
      }
      this.#forget(at);
      at = parent;
    }
  }

  /** Makes it the first of the tree; each prefix before it leads to no other. */
  cut(prefix: number): void {
    for (let at = this.parent[prefix] as number; at !== NOBODY; ) {
      const parent = this.parent[at] as number;
      this.#forget(at);
      at = parent;
    }
    this.parent[prefix] = NOBODY;
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
    const length = this.parent.length * 2;
    const ints = ['parent', 'child', 'sibling', 'token', 'depth', 'node', 'letters', 'frame', 'candidate'] as const;
    for (const name of ints) this[name] = longer(this[name], length);
    const floats = ['state', 'finished', 'bias', 'closedFinished', 'closedState'] as const;
    for (const name of floats) this[name] = longer(this[name], length);
    const paths = ['blank', 'sounding', 'blankPath', 'soundingPath'] as const;
    for (const name of paths) this[name] = longer(this[name], length);
    this.closed = longer(this.closed, length);
    this.kept = longer(this.kept, length);
  }
}
