import { DAY_MS } from '../../shared/day.ts';
import { limits } from '../../shared/limits.ts';

/**
 * What a gate has booked by its name, so that it is booked once however often it is told. Kept longer than anybody tells
 * of it. Written and read by the owning object only; lost with its storage, and then what is told again is booked again.
 */
export class Booked {
  readonly #sql: SqlStorage;
  /** Named in the steps that are being decided, and not written yet. */
  readonly #fresh = new Set<string>();
  #swept = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS booked (id TEXT PRIMARY KEY, t INTEGER NOT NULL) WITHOUT ROWID');
  }

  /** False when it is booked already. */
  add(id: string): boolean {
    if (this.#fresh.has(id)) return false;
    if (this.#sql.exec('SELECT 1 FROM booked WHERE id = ?', id).toArray().length > 0) return false;
    this.#fresh.add(id);
    return true;
  }

  /** Inside the transaction that books. */
  write(now: number): void {
    for (const id of this.#fresh) this.#sql.exec('INSERT INTO booked VALUES (?, ?)', id, now);
    if (this.#fresh.size > 0 && this.#swept + DAY_MS <= now) {
      this.#sql.exec('DELETE FROM booked WHERE t < ?', now - limits.usageKnownDays.value * DAY_MS);
      this.#swept = now;
    }
    this.#fresh.clear();
  }

  /** The transaction did not happen. */
  forget(): void {
    this.#fresh.clear();
  }
}
