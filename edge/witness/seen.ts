// What a witness has seen of one log: one object for each, so that looking and writing down are one step for all who ask.
import { DurableObject } from 'cloudflare:workers';
import type { Hash } from '../../shared/audit/tree.ts';
import { type Advance, advance, type Head } from './advance.ts';
import type { WitnessBindings } from './settings.ts';

type Row = { size: number; root: ArrayBuffer; note: string | null };

export class Seen extends DurableObject<WitnessBindings> {
  /** Goes on to a checkpoint whose log has signed it, if it may. It is on disk before the answer leaves. */
  advance(old: number, proof: readonly Hash[], next: Head): Advance {
    return this.ctx.storage.transactionSync(() => {
      const row = this.#read();
      const seen = row && { size: row.size, root: new Uint8Array(row.root) };
      const answer = advance(seen, old, proof, next);
      // The same one again is cosigned again, and stays published as it is.
      if (answer.status === 200 && seen?.size !== next.size) this.#write(next);
      return answer;
    });
  }

  /** The cosigned checkpoint, for whoever asks what we have seen. A newer one may have come since it was decided on. */
  publish(size: number, note: string): void {
    if (this.#read()?.size === size) this.ctx.storage.sql.exec('UPDATE seen SET note = ? WHERE id = 0', note);
  }

  /** `undefined` when nothing was ever cosigned. */
  newest(): string | undefined {
    const row = this.#read();
    return row?.note ?? undefined;
  }

  /** Asking about a log that nobody ever told us of leaves nothing behind. */
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
    // What is published stays until the new one is cosigned: a moment later, or with the next question.
    sql.exec(
      `INSERT INTO seen (id, size, root) VALUES (0, ?, ?)
       ON CONFLICT (id) DO UPDATE SET size = excluded.size, root = excluded.root`,
      size,
      root.slice().buffer,
    );
  }
}
