// State of a witness for one log, in one Durable Object, so that check and write are one step for all
// callers.
import { DurableObject } from 'cloudflare:workers';
import type { Hash } from '../../shared/audit/tree.ts';
import { type Advance, advance, type Head } from './advance.ts';

type Row = { size: number; root: ArrayBuffer; note: string | null };

export class Seen extends DurableObject {
  /** Advances to a checkpoint signed by its log, if allowed. Durable when the answer leaves. */
  advance(old: number, proof: readonly Hash[], next: Head): Advance {
    return this.ctx.storage.transactionSync(() => {
      const row = this.#read();
      const seen = row && { size: row.size, root: new Uint8Array(row.root) };
      const answer = advance(seen, old, proof, next);
      // The same checkpoint is cosigned again; the published one stays.
      if (answer.status === 200 && seen?.size !== next.size) this.#write(next);
      return answer;
    });
  }

  /** Publishes the cosigned checkpoint, unless a newer one has come since the decision. */
  publish(size: number, note: string): void {
    if (this.#read()?.size === size) this.ctx.storage.sql.exec('UPDATE seen SET note = ? WHERE id = 0', note);
  }

  /** Returns the published checkpoint; `undefined` before the first. */
  newest(): string | undefined {
    const row = this.#read();
    return row?.note ?? undefined;
  }

  /** Reads the state; a read of an unknown log creates no storage. */
  #read(): Row | undefined {
    const { sql } = this.ctx.storage;
    const made = sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'seen'").toArray().length > 0;
    return made ? sql.exec<Row>('SELECT size, root, note FROM seen WHERE id = 0').toArray()[0] : undefined;
  }

  #write({ size, root }: Head): void {
    const { sql } = this.ctx.storage;
    sql.exec(
      `CREATE TABLE IF NOT EXISTS seen
       (id INTEGER PRIMARY KEY CHECK (id = 0), size INTEGER NOT NULL, root BLOB NOT NULL, note TEXT)`,
    );
    // The former checkpoint stays published until the new one is cosigned: a moment later, or at the next
    // request.
    sql.exec(
      `INSERT INTO seen (id, size, root) VALUES (0, ?, ?)
       ON CONFLICT (id) DO UPDATE SET size = excluded.size, root = excluded.root`,
      size,
      root.slice().buffer,
    );
  }
}
