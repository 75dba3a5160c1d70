// Events that reached the log twice: the functions may report one again. The second leaves a leaf that names the first, so
// that no number of its producer is missing, and does not count for its tenant again.
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { TILE_WIDTH, tilePath, tileWith, unpackEntries } from '../../../shared/audit/tile.ts';
import { fileArea, fileName } from '../log/log-names.ts';
import type { LogState } from '../log/log-state.ts';
import type { LogStore } from '../log/log-store.ts';

/**
 * Entries searched for an event that arrived twice: one commit of the largest size. Older duplicates stay,
 * with one id.
 */
const RECENT_IDS_MAX = 4_096;

/** Reports whether a producer may send an event that the log has. */
export const mayRepeat = (producer: string): boolean => producer.startsWith('functions/');

/** Ids of the last entries of a log. Read from the log on first use, then updated. */
export class RecentIds {
  #origin: string | undefined;
  #size = 0;
  readonly #ids = new Set<string>();

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Makes it hold those of the last `RECENT_IDS_MAX` entries of the state's log. */
  async load(store: Pick<LogStore, 'read'>, zone: string, { origin, year, size }: LogState): Promise<void> {
    if (this.#origin !== origin) {
      this.#ids.clear();
      this.#size = 0;
      this.#origin = origin;
    }
    const first = Math.max(this.#size, size - RECENT_IDS_MAX);
    for (let from = Math.floor(first / TILE_WIDTH) * TILE_WIDTH; from < size; from += TILE_WIDTH) {
      const tile = { ...tileWith(0, from, size), level: 'entries' as const };
      const area = fileArea({ partial: tile.width < TILE_WIDTH });
      const stored = await store.read(area, fileName(zone, year, tilePath(tile)));
      for (const entry of (stored && unpackEntries(stored.bytes)) ?? []) {
        const leaf = readLeaf(entry);
        if (leaf) this.#ids.add(leaf.id);
      }
    }
    this.#size = size;
    for (const id of this.#ids) {
      if (this.#ids.size <= RECENT_IDS_MAX) break;
      this.#ids.delete(id);
    }
  }
}
