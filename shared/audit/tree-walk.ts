// Walks the tree of a log leaf by leaf, with one tile of each level in memory, to append or to verify.
import { TILE_WIDTH, type TreeTile } from './tile.ts';
import { emptyRoot, type Hash, hashNode, rootOf } from './tree.ts';

export type SeeTile = (tile: TreeTile, hashes: readonly Hash[]) => void;

/** State of a walk: by level, the hashes of the partial tile. */
export interface TreeFacts {
  readonly size: number;
  readonly levels: readonly (readonly Hash[])[];
}

export class TreeWalk {
  #size: number;
  readonly #levels: Hash[][];
  readonly #see: SeeTile;

  /** `see` receives every full tile. */
  constructor(see: SeeTile = () => {}, { size, levels }: TreeFacts = { size: 0, levels: [] }) {
    this.#see = see;
    this.#size = size;
    this.#levels = levels.map((hashes) => [...hashes]);
  }

  get size(): number {
    return this.#size;
  }

  get facts(): TreeFacts {
    return { size: this.#size, levels: this.#levels.map((hashes) => [...hashes]) };
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

  /** Passes the partial tiles of a log that ends here. */
  end(see = this.#see): void {
    let index = this.#size;
    for (const [level, hashes] of this.#levels.entries()) {
      index = Math.floor(index / TILE_WIDTH);
      if (hashes.length > 0) see({ level, index, width: hashes.length }, hashes);
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
