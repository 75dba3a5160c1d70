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
 * The fewest complete subtrees that are the leaves `from` up to `to`. None of them reaches across one of `cuts`, which are
 * sizes the log once had, rising: at each the hashes to its left give the root that it had.
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

/** A log's left part, of which only the roots of its complete subtrees are held. */
export class LeftPart {
  readonly #hashes: Hash[] = [];
  readonly #heights: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds the complete subtree that comes next. */
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
