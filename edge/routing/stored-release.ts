import { type ReleaseMap, releaseMap } from '../../shared/registry/release.ts';

/**
 * Release map of a roster, on disk: without it, routing would fall back to the agents' own stages after a
 * restart.
 */
export class StoredRelease {
  readonly #sql: SqlStorage;
  #map: ReleaseMap | undefined;
  #signed: { readonly generation: number; readonly release: string } | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS release (one INTEGER PRIMARY KEY CHECK (one = 1), map TEXT NOT NULL)');
    const [row] = sql.exec<{ map: string }>('SELECT map FROM release').toArray();
    this.#map = row && releaseMap.parse(JSON.parse(row.map));
    sql.exec(
      'CREATE TABLE IF NOT EXISTS signed (one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, release TEXT NOT NULL)',
    );
    [this.#signed] = sql
      .exec<{ generation: number; release: string }>('SELECT generation, release FROM signed')
      .toArray();
  }

  get map(): ReleaseMap | undefined {
    return this.#map;
  }

  /** Returns the signed map for agents with an older generation; `undefined` for the others. */
  newerThan(generation: number): string | undefined {
    return this.#signed && this.#signed.generation > generation ? this.#signed.release : undefined;
  }

  /**
   * Stores a newer map and returns the stored generation, which never falls. `release`: the map as signed.
   */
  keep(map: ReleaseMap, release: string): number {
    const known = this.#map?.generation ?? -1;
    if (map.generation > (this.#signed?.generation ?? -1) && map.generation >= known) {
      const { generation } = map;
      this.#sql.exec('INSERT OR REPLACE INTO signed (one, generation, release) VALUES (1, ?, ?)', generation, release);
      this.#signed = { generation, release };
    }
    if (map.generation <= known) return known;
    this.#sql.exec('INSERT OR REPLACE INTO release (one, map) VALUES (1, ?)', JSON.stringify(map));
    this.#map = map;
    return map.generation;
  }
}
