import { packEntries, packHashes, TILE_WIDTH, type Tile, type TreeTile, tilePath } from '../../../shared/audit/tile.ts';
import { type Hash, hashLeaf } from '../../../shared/audit/tree.ts';
import { type TreeFacts, TreeWalk } from '../../../shared/audit/tree-walk.ts';

/** A file of the log by its path. */
export interface LogFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** A partial tile or bundle: obsolete once the full one exists. */
  readonly partial: boolean;
}

/** State needed to append: the walked tree, and the entries of the last bundle. */
export interface EdgeFacts extends TreeFacts {
  readonly bundle: readonly Uint8Array[];
}

/** The right edge of a log. Appends entries and returns the files to write and the new root. */
export class RightEdge {
  readonly #tree: TreeWalk;
  #bundle: Uint8Array[];
  readonly #full: LogFile[] = [];

  constructor({ bundle, ...tree }: EdgeFacts = { size: 0, levels: [], bundle: [] }) {
    this.#tree = new TreeWalk((tile, hashes) => this.#fill(tile, hashes), tree);
    this.#bundle = [...bundle];
  }

  append(entry: Uint8Array): void {
    this.#bundle.push(entry);
    this.#tree.add(hashLeaf(entry));
  }

  get size(): number {
    return this.#tree.size;
  }

  get facts(): EdgeFacts {
    return { ...this.#tree.facts, bundle: [...this.#bundle] };
  }

  root(): Hash {
    return this.#tree.root();
  }

  /** Returns full tiles and bundles completed since construction, and the current partial ones. */
  files(): LogFile[] {
    const files = [...this.#full];
    this.#tree.end((tile, hashes) => files.push(...this.#filesOf(tile, hashes)));
    return files;
  }

  #fill(tile: TreeTile, hashes: readonly Hash[]): void {
    this.#full.push(...this.#filesOf(tile, hashes));
    if (tile.level === 0) this.#bundle = [];
  }

  /** Hashes of a tile, and its entries at level 0. */
  #filesOf(tile: TreeTile, hashes: readonly Hash[]): LogFile[] {
    const partial = tile.width < TILE_WIDTH;
    const file = (one: Tile, bytes: Uint8Array): LogFile => ({ path: tilePath(one), bytes, partial });
    const own = file(tile, packHashes(hashes));
    return tile.level > 0 ? [own] : [own, file({ ...tile, level: 'entries' }, packEntries(this.#bundle))];
  }
}
