import { DAY_MS } from '../../shared/day.ts';

/** Days the edge remembers booked usage: functions report it as long as they have its row, and no longer. */
const USAGE_BOOKED_DAYS = 62;

/**
 * Usage reports that a gate has booked, by name, so that a repeated one is booked once. Rows outlive every retry. The
 * owning object alone reads and writes them; once its storage is lost, a repeated report is booked again.
 */
export class Booked {
  readonly #sql: SqlStorage;
  /** Names in steps that are decided and not yet written. */
  readonly #fresh = new Set<string>();
  #swept = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS booked (id TEXT PRIMARY KEY, t INTEGER NOT NULL) WITHOUT ROWID');
  }

  /** Adds a name; false when it is booked already. */
  add(id: string): boolean {
    if (this.#fresh.has(id)) return false;
    if (this.#sql.exec('SELECT 1 FROM booked WHERE id = ?', id).toArray().length > 0) return false;
    this.#fresh.add(id);
    return true;
  }

  /** Writes the names, inside the transaction that books. */
  write(now: number): void {
    for (const id of this.#fresh) this.#sql.exec('INSERT INTO booked VALUES (?, ?)', id, now);
    if (this.#fresh.size > 0 && this.#swept + DAY_MS <= now) {
      this.#sql.exec('DELETE FROM booked WHERE t < ?', now - USAGE_BOOKED_DAYS * DAY_MS);
      this.#swept = now;
    }
    this.#fresh.clear();
  }

  /** Discards the names after a failed transaction. */
  forget(): void {
    this.#fresh.clear();
  }
}
