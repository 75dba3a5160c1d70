// A log's storage in memory, with the rules of the real one, and what an outsider can make of what lies there.

import type { Area, LogStore, StoredFile } from '../../functions/audit/log/log-store.ts';
import { RightEdge } from '../../functions/audit/log/right-edge.ts';
import { readCheckpoint } from '../../shared/audit/checkpoint.ts';
import { type Leaf, readLeaf } from '../../shared/audit/leaf.ts';
import { partialTiles, tilePath, unpackEntries } from '../../shared/audit/tile.ts';

/** Storage's error for a write to a locked blob. */
export class Immutable extends Error {}

export class MemoryStore implements LogStore {
  readonly areas = new Map<Area, Map<string, StoredFile>>();
  #version = 0;
  /** Called with everything that is written. */
  watch: (area: Area, name: string, bytes: Uint8Array) => void = () => {};
  /** It does not say what time it is, unless a test does. */
  clock: () => number | undefined = () => undefined;

  area(area: Area): Map<string, StoredFile> {
    const found = this.areas.get(area) ?? new Map<string, StoredFile>();
    this.areas.set(area, found);
    return found;
  }

  #put(area: Area, name: string, bytes: Uint8Array): void {
    // The locked container: create, and nothing else, ever.
    if (area === 'log' && this.area(area).has(name)) throw new Immutable(name);
    this.#version += 1;
    this.area(area).set(name, { bytes: bytes.slice(), version: `"${this.#version}"` });
    this.watch(area, name, bytes);
  }

  async read(area: Area, name: string): Promise<StoredFile | undefined> {
    return this.area(area).get(name);
  }

  async create(area: Area, name: string, bytes: Uint8Array): Promise<boolean> {
    if (this.area(area).has(name)) return false;
    this.#put(area, name, bytes);
    return true;
  }

  async replace(area: Area, name: string, bytes: Uint8Array, version: string): Promise<boolean> {
    if (this.area(area).get(name)?.version !== version) return false;
    this.#put(area, name, bytes);
    return true;
  }

  async list(area: Area, prefix: string, limit: number): Promise<string[]> {
    const names = [...this.area(area).keys()].filter((name) => name.startsWith(prefix));
    return names.sort().slice(0, limit);
  }

  async remove(area: Area, name: string): Promise<void> {
    if (area === 'log') throw new Immutable(name);
    this.area(area).delete(name);
  }
}

export interface StoredLog {
  readonly entries: readonly Uint8Array[];
  readonly leaves: readonly Leaf[];
  /** Roots by size, of the sizes that were asked for. */
  readonly roots: ReadonlyMap<number, string>;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Reads a log by its published checkpoint and tiles alone, and checks everything that lies there against the entries. */
export function readStoredLog(
  store: MemoryStore,
  zone: string,
  year: number,
  sizes: readonly number[] = [],
): StoredLog {
  const wanted = new Set(sizes);
  const at = (area: Area, name: string) => store.area(area).get(`${zone}/${year}/${name}`)?.bytes;
  const note = at('state', 'checkpoint');
  const checkpoint = note && readCheckpoint(textOf(note));
  if (!checkpoint) throw new Error('no checkpoint is published');
  const file = (path: string) => at('log', path) ?? at('state', path);
  const entries: Uint8Array[] = [];
  while (entries.length < checkpoint.size) {
    const width = Math.min(256, checkpoint.size - entries.length);
    const path = tilePath({ level: 'entries', index: entries.length / 256, width });
    const some = unpackEntries(file(path) ?? new Uint8Array());
    if (some?.length !== width) throw new Error(`${path} is not there, or not whole`);
    entries.push(...some);
  }
  const edge = new RightEdge();
  const roots = new Map<number, string>();
  for (const entry of entries) {
    edge.append(entry);
    if (wanted.has(edge.size)) roots.set(edge.size, hex(edge.root()));
  }
  if (hex(edge.root()) !== hex(checkpoint.root)) throw new Error('the checkpoint has another root');
  for (const { path, bytes, partial } of edge.files()) {
    const found = at(partial ? 'state' : 'log', path);
    if (!found || hex(found) !== hex(bytes)) throw new Error(`${path} is not there, or another`);
  }
  if (partialTiles(checkpoint.size).some((tile) => !file(tilePath(tile)))) throw new Error('a partial tile is missing');
  const leaves = entries.map((entry) => {
    const leaf = readLeaf(entry);
    if (!leaf) throw new Error('an entry is no leaf');
    return leaf;
  });
  return { entries, leaves, roots };
}

export const textOf = (note: Uint8Array): string => {
  const text = new TextDecoder().decode(note);
  return text.slice(0, text.lastIndexOf('\n\n') + 1);
};
