// A log from its first leaf to its last, with no more in memory than one tile of each level: for whoever verifies it.
import { TILE_WIDTH, type Tile } from './tile.ts';
import { emptyRoot, type Hash, hashNode, rootOf } from './tree.ts';

export type SeeTile = (tile: Tile & { readonly level: number }, hashes: readonly Hash[]) => void;

export class TreeWalk {
  #size = 0;
  /** By level, the hashes of the tile that is not full yet. */
  readonly #levels: Hash[][] = [];
  readonly #see: SeeTile;

  /** `see` is called with every tile once it is full. */
  constructor(see: SeeTile = () => {}) {
    this.#see = see;
  }

  get size(): number {
    return this.#size;
  }

  add(leaf: Hash): void {
    let hash = leaf;
    let index = this.#size;
    this.#size += 1;
    for (let level = 0; ; level += 1) {
      this.#levels[level] ??= [];
      const hashes = this.#levels[level] as Hash[];
      hashes.push(hash);
      if (hashes.length < TILE_WIDTH) return;
      index = Math.floor(index / TILE_WIDTH);
      this.#see({ level, index, width: TILE_WIDTH }, hashes);
      hash = rootOf(hashes);
      this.#levels[level] = [];
    }
  }

  /** Shows the tiles that are not full, of a log that ends here. */
  end(): void {
    let count = this.#size;
    for (const [level, hashes] of this.#levels.entries()) {
      count = Math.floor(count / TILE_WIDTH);
      if (hashes.length > 0) this.#see({ level, index: count, width: hashes.length }, hashes);
    }
  }

  root(): Hash {
    let tail: Hash | undefined;
    for (const hashes of this.#levels) {
      for (let end = hashes.length; end > 0; ) {
        const width = end & -end;
        const peak = rootOf(hashes, end - width, end);
        tail = tail ? hashNode(peak, tail) : peak;
        end -= width;
      }
    }
    return tail ?? emptyRoot;
  }
}
