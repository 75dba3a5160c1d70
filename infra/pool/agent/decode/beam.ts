import { Candidates } from './candidates.ts';
import { createMeanings } from './meanings.ts';
import { type BeamParts, NOBODY, NONE, Prefixes, type Trail } from './prefix.ts';

function logAdd(a: number, b: number): number {
  if (a === NONE) return b;
  if (b === NONE) return a;
  return a > b ? a + Math.log1p(Math.exp(b - a)) : b + Math.log1p(Math.exp(a - b));
}

/** A token of a hypothesis and where it sounds. */
export interface DecodedToken {
  readonly token: number;
  readonly trail: Trail;
}

/** Shared by all decodings: a frame is heard from beginning to end before another one is. */
let shared = new Candidates(0);

/**
 * CTC prefix beam search (Hannun et al. 2014) with the language model applied at word ends and promised inside words.
 * Beside the sum over all paths, which ranks, every hypothesis carries its likeliest path, which says when its tokens
 * sound. Hypotheses that only differ in what no longer matters are one, which leaves room for others and lets words
 * settle soon. `onSettled` gets, in pieces, the words that all hypotheses begin with: each piece ends with a boundary, and
 * nothing heard later changes it. What is settled is forgotten, so that a frame costs the same however long the
 * utterance is.
 */
export function createBeam(parts: BeamParts, onSettled: (heard: readonly DecodedToken[]) => void) {
  const { width, blank, wordBoundary, settings } = parts;
  const tree = new Prefixes();
  const meanings = createMeanings(parts, tree);
  const root = meanings.begin(blank);
  tree.blank[root] = 0;
  tree.sounding[root] = NONE;
  tree.blankPath[root] = 0;
  tree.soundingPath[root] = NONE;
  tree.kept[root] = 1;
  let kept: number[] = [root];
  let frame = 0;
  /** Tokens that are likely enough in the frame, and how many. */
  const tried = new Int32Array(width);
  let tries = 0;
  /** The last prefix that all hypotheses share, and the last one of those that ends a word. */
  let fork = root;
  let trunk = root;
  const room = settings.beam * (width + 1) + 1;
  if (shared.room < room) shared = new Candidates(room);

  /** A candidate of which only is known which prefix it is. */
  function enter(prefix: number, token: number): number {
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
  function touch(prefix: number): number {
    if (tree.frame[prefix] === frame) return tree.candidate[prefix] as number;
    const slot = enter(prefix, tree.token[prefix] as number);
    tree.frame[prefix] = frame;
    tree.candidate[prefix] = slot;
    shared.node[slot] = tree.node[prefix] as number;
    shared.state[slot] = tree.state[prefix] as number;
    shared.bias[slot] = tree.bias[prefix] as number;
    return slot;
  }

  /** The candidate that a prefix is with one token more. */
  function extend(prefix: number, token: number): number {
    const child = tree.childOf(prefix, token);
    if (child !== NOBODY) return touch(child);
    const slot = enter(NOBODY, token);
    shared.parent[slot] = prefix;
    meanings.extend(prefix, token, shared, slot);
    return slot;
  }

  /** `both`: what the prefix came to, in blank or sounding. */
  function stay(prefix: number, slot: number, both: number, chance: number): void {
    shared.blank[slot] = logAdd(shared.blank[slot] as number, both + chance);
    const fromSound = (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number);
    const path = ((fromSound ? tree.soundingPath[prefix] : tree.blankPath[prefix]) as number) + chance;
    if (path <= (shared.blankPath[slot] as number)) return;
    shared.blankPath[slot] = path;
    shared.blankTrail[slot] = fromSound ? tree.soundingTrail[prefix] : tree.blankTrail[prefix];
  }

  function hold(prefix: number, slot: number, chance: number): void {
    shared.sounding[slot] = logAdd(shared.sounding[slot] as number, (tree.sounding[prefix] as number) + chance);
    const path = (tree.soundingPath[prefix] as number) + chance;
    if (path < (shared.soundingPath[slot] as number) || path === NONE) return;
    shared.soundingPath[slot] = path;
    shared.held[slot] = 1;
  }

  function grow(prefix: number, token: number, both: number, chance: number): void {
    // The same token twice is two letters only when blank parts them.
    const parted = token === tree.token[prefix];
    const reach = parted ? (tree.blank[prefix] as number) : both;
    if (reach === NONE) return;
    const slot = extend(prefix, token);
    shared.sounding[slot] = logAdd(shared.sounding[slot] as number, reach + chance);
    const fromSound = !parted && (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number);
    const path = ((fromSound ? tree.soundingPath[prefix] : tree.blankPath[prefix]) as number) + chance;
    if (path <= (shared.soundingPath[slot] as number)) return;
    shared.soundingPath[slot] = path;
    shared.before[slot] = fromSound ? tree.soundingTrail[prefix] : tree.blankTrail[prefix];
    shared.held[slot] = 0;
  }

  /** The candidates that go on as hypotheses, the best first. */
  function choose(): number[] {
    for (let slot = 0; slot < shared.size; slot++) {
      const heard = logAdd(shared.blank[slot] as number, shared.sounding[slot] as number);
      shared.score[slot] = heard + (shared.bias[slot] as number);
    }
    const likely = shared.rank(settings.giveUp);
    const chosen: number[] = [];
    for (let at = 0; at < likely && chosen.length < settings.beam; at++) {
      const slot = shared.order[at] as number;
      let outdone = false;
      for (let i = 0; i < chosen.length && !outdone; i++) outdone = shared.isOutdone(slot, chosen[i] as number);
      if (!outdone) chosen.push(slot);
    }
    return chosen;
  }

  /** The prefix of a candidate that was chosen. */
  function plant(slot: number): number {
    const known = shared.prefix[slot] as number;
    if (known !== NOBODY) return known;
    const prefix = tree.add(shared.parent[slot] as number, shared.token[slot] as number);
    tree.node[prefix] = shared.node[slot] as number;
    tree.letters[prefix] = shared.letters[slot] as number;
    tree.state[prefix] = shared.state[slot] as number;
    tree.finished[prefix] = shared.finished[slot] as number;
    tree.bias[prefix] = shared.bias[slot] as number;
    return prefix;
  }

  /** The frame has been heard: what the candidate came to is what the prefix is. */
  function settleFrame(prefix: number, slot: number, logProb: number): void {
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
      firstFrame: held?.firstFrame ?? frame,
      lastFrame: frame,
      logProb: held ? Math.max(held.logProb, logProb) : logProb,
      before: held ? held.before : shared.before[slot],
    };
  }

  const bestTrail = (prefix: number) =>
    (tree.soundingPath[prefix] as number) > (tree.blankPath[prefix] as number)
      ? tree.soundingTrail[prefix]
      : tree.blankTrail[prefix];

  /** Tokens of the prefix behind `after`, which leads to it. */
  function listHeard(prefix: number, after: number): DecodedToken[] {
    const heard: DecodedToken[] = [];
    let trail = bestTrail(prefix);
    for (let at = prefix; at !== after && tree.parent[at] !== NOBODY && trail; trail = trail.before) {
      heard.push({ token: tree.token[at] as number, trail });
      at = tree.parent[at] as number;
    }
    return heard.reverse();
  }

  /** Moves the trunk up to where hypotheses part, tells what is settled by that, and cuts off what led there. */
  function settle(): void {
    let word = trunk;
    while (!tree.kept[fork]) {
      const only = tree.child[fork] as number;
      if (only === NOBODY || tree.sibling[only] !== NOBODY) break;
      fork = only;
      if (tree.token[fork] === wordBoundary) word = fork;
    }
    const best = kept[0];
    if (word === trunk || best === undefined) return;
    onSettled(listHeard(best, trunk).slice(0, (tree.depth[word] as number) - (tree.depth[trunk] as number)));
    trunk = word;
    tree.cut(trunk);
    for (const prefix of kept) {
      for (const end of [tree.blankTrail[prefix], tree.soundingTrail[prefix]]) {
        let trail = end;
        const steps = (tree.depth[prefix] as number) - (tree.depth[trunk] as number);
        for (let step = 0; step < steps; step++) trail = trail?.before;
        if (trail) trail.before = undefined;
      }
    }
  }

  function hear(prefix: number, rows: Float32Array, from: number): void {
    const slot = touch(prefix);
    const token = tree.token[prefix] as number;
    const both = logAdd(tree.blank[prefix] as number, tree.sounding[prefix] as number);
    const silent = tree.letters[prefix] === 0;
    stay(prefix, slot, both, rows[from + blank] as number);
    if (token !== blank) hold(prefix, slot, rows[from + token] as number);
    for (let at = 0; at < tries; at++) {
      const next = tried[at] as number;
      const chance = rows[from + next] as number;
      // A boundary with no word before it says nothing: it counts as silence.
      if (next !== wordBoundary || !silent) grow(prefix, next, both, chance);
      else if (next !== token) stay(prefix, slot, both, chance);
    }
  }

  /** One row, which begins at `from`. */
  function advance(rows: Float32Array, from: number): void {
    tries = 0;
    for (let token = 0; token < width; token++) {
      if (token !== blank && (rows[from + token] as number) > settings.tokenFloor) tried[tries++] = token;
    }
    for (let at = 0; at < kept.length; at++) hear(kept[at] as number, rows, from);
    const chosen = choose();
    for (let at = 0; at < kept.length; at++) tree.kept[kept[at] as number] = 0;
    // All of them before anything is dropped: a number is not given to another one while somebody may still mean it.
    kept = chosen.map(plant);
    for (let at = 0; at < kept.length; at++) {
      tree.kept[kept[at] as number] = 1;
      const prefix = kept[at] as number;
      settleFrame(prefix, chosen[at] as number, rows[from + (tree.token[prefix] as number)] as number);
    }
    for (let slot = 0; slot < shared.size; slot++) {
      if (shared.prefix[slot] !== NOBODY) tree.drop(shared.prefix[slot] as number);
    }
    shared.clear();
    settle();
    frame++;
  }

  return {
    /** Takes `frames` rows of `width` natural-log probabilities. */
    push(logProbs: Float32Array, frames: number): void {
      for (let row = 0; row < frames; row++) advance(logProbs, row * width);
    },
    /** The best hypothesis behind what is settled. `ended`: the speaker has stopped. */
    best(ended: boolean): DecodedToken[] {
      let winner = trunk;
      let top = NONE;
      for (const prefix of kept) {
        const heard = logAdd(tree.blank[prefix] as number, tree.sounding[prefix] as number);
        const score = heard + (ended ? meanings.endScore(prefix) : (tree.bias[prefix] as number));
        if (score > top) [winner, top] = [prefix, score];
      }
      return listHeard(winner, trunk);
    },
    /** Prefixes held in memory: those of the hypotheses behind what is settled. */
    held: () => tree.size(),
  };
}
