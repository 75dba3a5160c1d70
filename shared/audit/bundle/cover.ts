// Inclusion proof of many entries at once: complete subtrees fill the gaps between them, and with one hash
// for each the root is computed from left to right. The positions of the entries determine the subtrees, so a
// bundle stores hashes only (`VERIFY.md` of a bundle).
import { emptyRoot, type Hash, hashNode } from '../tree.ts';

/** The complete subtree of 2^height leaves that begins at leaf `at`·2^height. */
export interface Block {
  readonly height: number;
  readonly at: number;
}

/**
 * Returns the fewest complete subtrees that cover the leaves `from` up to `to`. None crosses one of the
 * ascending `cuts`, former sizes of the log: at each, the hashes to its left give the root of that size.
 */
export function blocksBetween(from: number, to: number, cuts: readonly number[]): Block[] {
  const blocks: Block[] = [];
  let start = from;
  for (const end of [...cuts.filter((cut) => cut > from && cut < to), to]) {
    while (start < end) {
      let [height, width] = [0, 1];
      while (start % (width * 2) === 0 && start + width * 2 <= end) [height, width] = [height + 1, width * 2];
      blocks.push({ height, at: start / width });
      start += width;
    }
  }
  return blocks;
}

/** The left part of a log, of which only the roots of its complete subtrees are stored. */
export class LeftPart {
  readonly #hashes: Hash[] = [];
  readonly #heights: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Appends the next complete subtree. */
  push(height: number, hash: Hash): void {
    const width = 2 ** height;
    if (this.#size % width !== 0) throw new RangeError(`no subtree of ${width} begins at ${this.#size}`);
    this.#size += width;
    let [joined, level] = [hash, height];
    while (this.#heights.at(-1) === level) {
      joined = hashNode(this.#hashes.pop() as Hash, joined);
      this.#heights.pop();
      level += 1;
    }
    this.#hashes.push(joined);
    this.#heights.push(level);
  }

  root(): Hash {
    let tail: Hash | undefined;
    for (const peak of this.#hashes.toReversed()) tail = tail ? hashNode(peak, tail) : peak;
    return tail ?? emptyRoot;
  }
}
