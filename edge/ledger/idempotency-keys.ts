import {
  claimKey,
  endKey,
  holdsKey,
  IDEMPOTENCY_KEY_S,
  type KeyClaim,
  type KeyDecision,
  type KeyOutcome,
  type StoredKey,
} from './idempotency.ts';

/** Keys of a tenant, 200 bytes each: ten days of its largest backlog of uploads. Beyond it the oldest go. */
const IDEMPOTENCY_KEYS_MAX = 200_000;
/**
 * Time since its last renewal after which the key of a file in transit is free: a read, a block and its list
 * with three tries of 20 s fit.
 */
const IDEMPOTENCY_SEND_MS = 150_000;

const SWEEP_MS = 3_600_000;

/** The Idempotency-Keys of a gate, in its storage. Read and written by the owning object only, without suspension. */
export class IdempotencyKeys {
  readonly #sql: SqlStorage;
  #swept = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS idempotency (key TEXT PRIMARY KEY, at INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID',
    );
    sql.exec('CREATE INDEX IF NOT EXISTS idempotency_at ON idempotency (at)');
  }

  claim(keyClaim: KeyClaim, now: number): KeyDecision {
    this.#sweep(now);
    const { decision, store } = claimKey(this.#read(keyClaim.key), keyClaim, now);
    if (store) this.#write(keyClaim.key, store);
    return decision;
  }

  /** Renews the key of a running request, unless a later run has claimed it. */
  renew(key: string, now: number, run: string | undefined): void {
    const stored = this.#read(key);
    if (holdsKey(stored, run)) this.#write(key, { ...stored, runsUntil: now + IDEMPOTENCY_SEND_MS });
  }

  /** Ends a run; returns whether it frees its key. Does nothing when a later run has claimed the key. */
  end(key: string, outcome: KeyOutcome, { content, run }: Pick<StoredKey, 'content' | 'run'>): boolean {
    const stored = this.#read(key);
    if (!holdsKey(stored, run)) return false;
    const next = endKey(stored, outcome, content);
    if (next) this.#write(key, next);
    else this.#sql.exec('DELETE FROM idempotency WHERE key = ?', key);
    return !next;
  }

  #read(key: string): StoredKey | undefined {
    const [row] = this.#sql.exec<{ state: string }>('SELECT state FROM idempotency WHERE key = ?', key).toArray();
    return row && (JSON.parse(row.state) as StoredKey);
  }

  #write(key: string, stored: StoredKey): void {
    this.#sql.exec('INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?)', key, stored.at, JSON.stringify(stored));
  }

  /** Removes keys older than a day, and the oldest beyond the bound. */
  #sweep(now: number): void {
    if (now - this.#swept < SWEEP_MS) return;
    this.#swept = now;
    this.#sql.exec('DELETE FROM idempotency WHERE at < ?', now - IDEMPOTENCY_KEY_S * 1_000);
    this.#sql.exec(
      'DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency ORDER BY at DESC LIMIT -1 OFFSET ?)',
      IDEMPOTENCY_KEYS_MAX,
    );
  }
}
