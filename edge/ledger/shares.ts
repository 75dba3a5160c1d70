import type { Refusal } from '../../shared/refusal.ts';
import { ok, type Result } from '../../shared/result.ts';
import type { TokenShare } from '../../shared/tenant/claims.ts';
import type { AdmissionRequest, AllowanceState } from './allowance.ts';
import { bookShare, type ShareState, takeShare } from './share.ts';

interface Row {
  readonly state: ShareState;
  /** Expiry, ms since 1970. */
  readonly until: number;
}

const SWEEP_MS = 60_000;

/**
 * Usage of tokens with their own allowance, one row each until the token expires. Decided in memory, written
 * in the transactions of the gate. Loss of its storage resets the counters to zero.
 */
export class Shares {
  readonly #sql: SqlStorage;
  #unwritten: ReadonlyMap<string, Row> = new Map();
  #sweptAt = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS share (id TEXT PRIMARY KEY, until INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID',
    );
  }

  of(id: string): ShareState | undefined {
    return this.#row(id)?.state;
  }

  #row(id: string): Row | undefined {
    const known = this.#unwritten.get(id);
    if (known) return known;
    const [row] = this.#sql
      .exec<{ until: number; state: string }>('SELECT until, state FROM share WHERE id = ?', id)
      .toArray();
    return row && { until: row.until, state: JSON.parse(row.state) as ShareState };
  }

  /** Leases a slot of the token, once its tenant has one; `tenant` is the tenant's state before. */
  take(
    tenant: AllowanceState,
    request: AdmissionRequest & { readonly share: TokenShare },
    now: number,
  ): Result<undefined, Refusal> {
    const { id, until } = request.share;
    const taken = takeShare(this.of(id), tenant, request, now);
    if (!taken.ok) return taken;
    this.#set(id, { state: taken.value, until });
    return ok(undefined);
  }

  /** Books the seconds of an ended request. */
  book(id: string, audioSeconds: number, now: number): void {
    const row = this.#row(id);
    if (row) this.#set(id, { ...row, state: bookShare(row.state, audioSeconds, now) });
  }

  #set(id: string, row: Row): void {
    this.#unwritten = new Map(this.#unwritten).set(id, row);
  }

  /** Returns all unwritten rows; `restore` undoes later decisions. */
  mark(): ReadonlyMap<string, Row> {
    return this.#unwritten;
  }

  restore(mark: ReadonlyMap<string, Row>): void {
    this.#unwritten = mark;
  }

  /** Writes the rows, inside the transaction of the gate. */
  write(now: number): void {
    for (const [id, { until, state }] of this.#unwritten) {
      this.#sql.exec('INSERT OR REPLACE INTO share VALUES (?, ?, ?)', id, until, JSON.stringify(state));
    }
    if (this.#unwritten.size > 0 && this.#sweptAt + SWEEP_MS <= now) {
      this.#sql.exec('DELETE FROM share WHERE until < ?', now);
      this.#sweptAt = now;
    }
  }

  /** Confirms the rows after the transaction. */
  written(): void {
    this.#unwritten = new Map();
  }
}
