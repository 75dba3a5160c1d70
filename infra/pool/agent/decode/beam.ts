import { type BeamParts, createTree, NONE, type Prefix, type Trail } from './prefix.ts';

function logAdd(a: number, b: number): number {
  if (a === NONE) return b;
  if (b === NONE) return a;
  return a > b ? a + Math.log1p(Math.exp(b - a)) : b + Math.log1p(Math.exp(a - b));
}

/** A token of a hypothesis and where it sounds. */
export interface Heard {
  readonly token: number;
  readonly trail: Trail;
}

/**
 * CTC prefix beam search (Hannun et al. 2014) with the language model applied at word ends and promised inside words.
 * Beside the sum over all paths, which ranks, every hypothesis carries its likeliest path, which says when its tokens
 * sound. Hypotheses that only differ in what no longer matters are one, which leaves room for others and lets words
 * settle soon. `onSettled` gets, in pieces, the words that all hypotheses begin with: each piece ends with a boundary, and
 * nothing heard later changes it. What is settled is forgotten, so that a frame costs the same however long the
 * utterance is.
 */
export function createBeam(parts: BeamParts, onSettled: (heard: readonly Heard[]) => void) {
  const { width, blank, wordBoundary, settings } = parts;
  const tree = createTree(parts);
  const root = tree.root();
  root.blank = 0;
  root.blankPath = 0;
  root.kept = true;
  let kept: Prefix[] = [root];
  let frame = 0;
  /** The last prefix that all hypotheses share, and the last one of those that ends a word. */
  let fork = root;
  let trunk = root;

  function touch(prefix: Prefix, seen: Prefix[]): void {
    const { next } = prefix;
    if (next.frame === frame) return;
    next.frame = frame;
    next.blank = NONE;
    next.sounding = NONE;
    next.blankPath = NONE;
    next.soundingPath = NONE;
    next.blankTrail = undefined;
    next.before = undefined;
    next.held = false;
    seen.push(prefix);
  }

  function stay(prefix: Prefix, chance: number): void {
    const { next } = prefix;
    next.blank = logAdd(next.blank, logAdd(prefix.blank, prefix.sounding) + chance);
    const fromSound = prefix.soundingPath > prefix.blankPath;
    const path = (fromSound ? prefix.soundingPath : prefix.blankPath) + chance;
    if (path <= next.blankPath) return;
    next.blankPath = path;
    next.blankTrail = fromSound ? prefix.soundingTrail : prefix.blankTrail;
  }

  function hold(prefix: Prefix, chance: number): void {
    const { next } = prefix;
    next.sounding = logAdd(next.sounding, prefix.sounding + chance);
    const path = prefix.soundingPath + chance;
    if (path < next.soundingPath || path === NONE) return;
    next.soundingPath = path;
    next.held = true;
  }

  function grow(prefix: Prefix, token: number, chance: number, seen: Prefix[]): void {
    // The same token twice is two letters only when blank parts them.
    const parted = token === prefix.token;
    const reach = parted ? prefix.blank : logAdd(prefix.blank, prefix.sounding);
    if (reach === NONE) return;
    const child = tree.extend(prefix, token);
    touch(child, seen);
    const { next } = child;
    next.sounding = logAdd(next.sounding, reach + chance);
    const fromSound = !parted && prefix.soundingPath > prefix.blankPath;
    const path = (fromSound ? prefix.soundingPath : prefix.blankPath) + chance;
    if (path <= next.soundingPath) return;
    next.soundingPath = path;
    next.before = fromSound ? prefix.soundingTrail : prefix.blankTrail;
    next.held = false;
  }

  /** The frame has been heard: what came next is what is. */
  function settleFrame(prefix: Prefix, row: Float32Array): void {
    const { next } = prefix;
    prefix.blank = next.blank;
    prefix.sounding = next.sounding;
    prefix.blankPath = next.blankPath;
    prefix.blankTrail = next.blankTrail;
    prefix.soundingPath = next.soundingPath;
    if (next.soundingPath === NONE) {
      prefix.soundingTrail = undefined;
      return;
    }
    const logProb = row[prefix.token] as number;
    const held = next.held ? prefix.soundingTrail : undefined;
    prefix.soundingTrail = {
      firstFrame: held?.firstFrame ?? frame,
      lastFrame: frame,
      logProb: held ? Math.max(held.logProb, logProb) : logProb,
      before: held ? held.before : next.before,
    };
  }

  /** The hypotheses among what the frame has left, the best first. */
  function choose(seen: Prefix[]): Prefix[] {
    for (const { next, bias } of seen) next.score = logAdd(next.blank, next.sounding) + bias;
    seen.sort((a, b) => b.next.score - a.next.score);
    const floor = (seen[0]?.next.score ?? 0) - settings.giveUp;
    const chosen: Prefix[] = [];
    for (const prefix of seen) {
      if (chosen.length === settings.beam || prefix.next.score < floor) break;
      if (!isOutdone(prefix, chosen)) chosen.push(prefix);
    }
    return chosen;
  }

  function isOutdone(prefix: Prefix, chosen: readonly Prefix[]): boolean {
    for (const better of chosen) if (tree.isOutdone(prefix, better)) return true;
    return false;
  }

  const bestTrail = (prefix: Prefix) =>
    prefix.soundingPath > prefix.blankPath ? prefix.soundingTrail : prefix.blankTrail;

  /** Tokens of the prefix behind `after`, which leads to it. */
  function listHeard(prefix: Prefix, after: Prefix): Heard[] {
    const heard: Heard[] = [];
    let trail = bestTrail(prefix);
    for (let at = prefix; at !== after && at.parent && trail; at = at.parent, trail = trail.before) {
      heard.push({ token: at.token, trail });
    }
    return heard.reverse();
  }

  /** Moves the trunk up to where hypotheses part, tells what is settled by that, and cuts off what led there. */
  function settle(): void {
    let word = trunk;
    while (!fork.kept && fork.children?.size === 1) {
      for (const only of fork.children.values()) fork = only;
      if (fork.token === wordBoundary) word = fork;
    }
    const best = kept[0];
    if (word === trunk || !best) return;
    onSettled(listHeard(best, trunk).slice(0, word.depth - trunk.depth));
    trunk = word;
    trunk.parent = undefined;
    for (const { depth, blankTrail, soundingTrail } of kept) {
      for (const end of [blankTrail, soundingTrail]) {
        let trail = end;
        for (let steps = depth - trunk.depth; steps > 0; steps--) trail = trail?.before;
        if (trail) trail.before = undefined;
      }
    }
  }

  function advance(row: Float32Array): void {
    const tried: number[] = [];
    for (let token = 0; token < width; token++) {
      if (token !== blank && (row[token] as number) > settings.tokenFloor) tried.push(token);
    }
    const seen: Prefix[] = [];
    for (const prefix of kept) {
      touch(prefix, seen);
      stay(prefix, row[blank] as number);
      if (prefix.token !== blank) hold(prefix, row[prefix.token] as number);
      for (const token of tried) {
        // A boundary with no word before it says nothing: it counts as silence.
        if (token !== wordBoundary || prefix.letters > 0) grow(prefix, token, row[token] as number, seen);
        else if (token !== prefix.token) stay(prefix, row[token] as number);
      }
    }
    for (const prefix of kept) prefix.kept = false;
    kept = choose(seen);
    for (const prefix of kept) prefix.kept = true;
    for (const prefix of kept) settleFrame(prefix, row);
    for (const prefix of seen) tree.drop(prefix);
    settle();
    frame++;
  }

  return {
    /** Takes `frames` rows of `width` natural-log probabilities. */
    push(logProbs: Float32Array, frames: number): void {
      for (let row = 0; row < frames; row++) advance(logProbs.subarray(row * width, (row + 1) * width));
    },
    /** The best hypothesis behind what is settled. `ended`: the speaker has stopped. */
    best(ended: boolean): Heard[] {
      let winner = trunk;
      let top = NONE;
      for (const prefix of kept) {
        const score = logAdd(prefix.blank, prefix.sounding) + (ended ? tree.endScore(prefix) : prefix.bias);
        if (score > top) [winner, top] = [prefix, score];
      }
      return listHeard(winner, trunk);
    },
    /** Prefixes held in memory: those of the hypotheses behind what is settled. */
    held(): number {
      const waiting = [trunk];
      let count = 0;
      for (let at = waiting.pop(); at; at = waiting.pop()) {
        count++;
        waiting.push(...(at.children?.values() ?? []));
      }
      return count;
    },
  };
}
