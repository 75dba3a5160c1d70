import { packEntries, packHashes, TILE_WIDTH, tilePath } from './tile.ts';
import { emptyRoot, type Hash, hashLeaf, hashNode, rootOf } from './tree.ts';

/** A file of the log by its path. */
export interface LogFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** A partial one: of no use once the full one is there. */
  readonly partial: boolean;
}

/** What it takes to append: by level, the hashes of the tile that is not full yet, and the entries of the last bundle. */
export interface EdgeFacts {
  readonly size: number;
  readonly levels: readonly (readonly Hash[])[];
  readonly bundle: readonly Uint8Array[];
}

/** The right edge of a log. Appends, and says what has to be written and what the root is now. */
export class RightEdge {
  #size: number;
  readonly #levels: Hash[][];
  #bundle: Uint8Array[];
  readonly #full: LogFile[] = [];

  constructor({ size, levels, bundle }: EdgeFacts = { size: 0, levels: [], bundle: [] }) {
    this.#size = size;
    this.#levels = levels.map((hashes) => [...hashes]);
    this.#bundle = [...bundle];
  }

  append(entry: Uint8Array): void {
    this.#bundle.push(entry);
    let hash = hashLeaf(entry);
    let index = this.#size;
    this.#size += 1;
    for (let level = 0; ; level += 1) {
      this.#levels[level] ??= [];
      const hashes = this.#levels[level] as Hash[];
      hashes.push(hash);
      if (hashes.length < TILE_WIDTH) return;
      index = Math.floor(index / TILE_WIDTH);
      this.#put({ level, index, width: TILE_WIDTH }, packHashes(hashes));
      if (level === 0) {
        this.#put({ level: 'entries', index, width: TILE_WIDTH }, packEntries(this.#bundle));
        this.#bundle = [];
      }
      hash = rootOf(hashes);
      this.#levels[level] = [];
    }
  }

  get size(): number {
    return this.#size;
  }

  get facts(): EdgeFacts {
    return { size: this.#size, levels: this.#levels.map((hashes) => [...hashes]), bundle: [...this.#bundle] };
  }

  root(): Hash {
    let tail: Hash | undefined;
    for (const hashes of this.#levels) tail = joinPeaks(hashes, tail);
    return tail ?? emptyRoot;
  }

  /** The full tiles and bundles that came to be since this object was made, and the partial ones as they are now. */
  files(): LogFile[] {
    const partial: LogFile[] = [];
    let index = this.#size;
    for (const [level, hashes] of this.#levels.entries()) {
      index = Math.floor(index / TILE_WIDTH);
      const width = hashes.length;
      if (width === 0) continue;
      partial.push({ path: tilePath({ level, index, width }), bytes: packHashes(hashes), partial: true });
      if (level > 0) continue;
      const path = tilePath({ level: 'entries', index, width });
      partial.push({ path, bytes: packEntries(this.#bundle), partial: true });
    }
    return [...this.#full, ...partial];
  }

  #put(tile: Parameters<typeof tilePath>[0], bytes: Uint8Array): void {
    this.#full.push({ path: tilePath(tile), bytes, partial: false });
  }
}

/** Subtrees of one height, joined as the tree does: `tail` is what is right of them, and lower. */
function joinPeaks(hashes: readonly Hash[], tail: Hash | undefined): Hash | undefined {
  let joined = tail;
  for (let end = hashes.length; end > 0; ) {
    const width = end & -end;
    const peak = rootOf(hashes, end - width, end);
    joined = joined ? hashNode(peak, joined) : peak;
    end -= width;
  }
  return joined;
}
