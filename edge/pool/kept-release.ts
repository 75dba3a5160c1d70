import { type ReleaseMap, releaseMap } from '../../shared/model/release.ts';

/** The release map of a roster, on its disk: it outlives the object, so that nobody falls back to what agents say. */
export class KeptRelease {
  readonly #sql: SqlStorage;
  #map: ReleaseMap | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS release (one INTEGER PRIMARY KEY CHECK (one = 1), map TEXT NOT NULL)');
    const [row] = sql.exec<{ map: string }>('SELECT map FROM release').toArray();
    this.#map = row && releaseMap.parse(JSON.parse(row.map));
  }

  get map(): ReleaseMap | undefined {
    return this.#map;
  }

  /** The generation that is kept afterwards: never a lower one than before. */
  keep(map: ReleaseMap): number {
    const known = this.#map?.generation ?? -1;
    if (map.generation <= known) return known;
    this.#sql.exec('INSERT OR REPLACE INTO release (one, map) VALUES (1, ?)', JSON.stringify(map));
    this.#map = map;
    return map.generation;
  }
}
