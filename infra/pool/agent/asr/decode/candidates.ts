import type { Trail } from './prefix.ts';

/**
 * Candidates of one frame, before the best are chosen: prefixes of the tree and others that are not in it
 * yet. In columns that each frame reuses, since all but a few are dropped at once.
 */
export class Candidates {
  size = 0;
  /** How many there is room for. */
  readonly capacity: number;
  /** Its number in the tree; one that is not there goes on from `parent` with `token`. */
  readonly prefix: Int32Array;
  readonly parent: Int32Array;
  readonly token: Int32Array;
  /** Node of the prefix in `Prefixes`, existing or not. */
  readonly node: Int32Array;
  readonly letters: Int32Array;
  readonly state: Float64Array;
  readonly finished: Float64Array;
  readonly bias: Float64Array;
  readonly term: Int32Array;
  readonly lift: Float64Array;
  /** After the frame. */
  readonly blank: Float64Array;
  readonly sounding: Float64Array;
  readonly blankPath: Float64Array;
  readonly soundingPath: Float64Array;
  readonly blankTrail: (Trail | undefined)[];
  /** Trail of the likeliest path before its last token; `held` when that token was sounding already. */
  readonly before: (Trail | undefined)[];
  readonly held: Uint8Array;
  /** Ranks it. */
  readonly score: Float64Array;
  /** Candidates that are likely enough, the best first. */
  readonly order: Int32Array;

  constructor(capacity: number) {
    this.capacity = capacity;
    const ints = () => new Int32Array(capacity);
    const floats = () => new Float64Array(capacity);
    this.prefix = ints();
    this.parent = ints();
    this.token = ints();
    this.node = ints();
    this.letters = ints();
    this.order = ints();
    this.term = ints();
    this.state = floats();
    this.finished = floats();
    this.bias = floats();
    this.lift = floats();
    this.blank = floats();
    this.sounding = floats();
    this.blankPath = floats();
    this.soundingPath = floats();
    this.score = floats();
    this.held = new Uint8Array(capacity);
    this.blankTrail = new Array<Trail | undefined>(capacity).fill(undefined);
    this.before = new Array<Trail | undefined>(capacity).fill(undefined);
  }

  /** Puts those that are at most `giveUp` less likely than the best in order, those alike as they came; how many. */
  rank(giveUp: number): number {
    const { score, order, size } = this;
    let best = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < size; at++) if ((score[at] as number) > best) best = score[at] as number;
    const floor = best - giveUp;
    let count = 0;
    for (let at = 0; at < size; at++) {
      const own = score[at] as number;
      if (own < floor) continue;
      let place = count++;
      for (; place > 0 && (score[order[place - 1] as number] as number) < own; place--) {
        order[place] = order[place - 1] as number;
      }
      order[place] = at;
    }
    return count;
  }

  /**
   * Whether the worse of two will not win again, as the better one goes on in the same ways at no higher price: only
   * words before the last two differ, or letters of a word that the lexicon does not have. Paths that might still come in
   * from shorter prefixes are not waited for.
   */
  isOutdone(worse: number, better: number): boolean {
    const { state, node, term, token, blank, sounding, bias, lift } = this;
    if (state[worse] !== state[better] || node[worse] !== node[better] || token[worse] !== token[better]) return false;
    if (term[worse] !== term[better]) return false;
    // The lift may be taken back.
    const own = (bias[worse] as number) + Math.max(0, (lift[worse] as number) - (lift[better] as number));
    const other = bias[better] as number;
    return (
      (blank[worse] as number) + own <= (blank[better] as number) + other &&
      (sounding[worse] as number) + own <= (sounding[better] as number) + other
    );
  }

  /** Nothing of this decoding stays behind. */
  clear(): void {
    this.blankTrail.fill(undefined, 0, this.size);
    this.before.fill(undefined, 0, this.size);
    this.size = 0;
  }
}
