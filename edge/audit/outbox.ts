import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';
import { limits } from '../../shared/limits.ts';

const outboxRow = z.object({
  /** Position in this outbox: grows by one, is never reused, so a missing number is a missing event. */
  pseq: z.number().int(),
  /** When it was written, ms since 1970. */
  t: z.number().int(),
  event: z.unknown(),
});

export const outboxPage = z.object({
  /** Which life of the producer the numbers belong to. */
  epoch: z.string(),
  rows: z.array(outboxRow),
  /** Pass as `after` to read on; absent at the end. */
  next: z.number().int().optional(),
});
export type OutboxPage = z.infer<typeof outboxPage>;

/**
 * Audit events that a Durable Object holds until the log has taken them over. A row that was inserted is durable
 * once the object's answer leaves (the runtime holds answers back until then).
 * Written and read by the owning object only. Lost with the object's storage, which a gap in `pseq` shows.
 */
export class Outbox {
  readonly #sql: SqlStorage;
  readonly #bound: number;
  #count: number;
  #next: number;
  readonly epoch: string;

  constructor(sql: SqlStorage, bound: number = limits.auditOutboxEvents.value) {
    this.#sql = sql;
    this.#bound = bound;
    sql.exec('CREATE TABLE IF NOT EXISTS meta (id INTEGER PRIMARY KEY CHECK (id = 0), epoch TEXT, next INTEGER)');
    sql.exec('CREATE TABLE IF NOT EXISTS ev (pseq INTEGER PRIMARY KEY, body TEXT NOT NULL, t INTEGER NOT NULL)');
    sql.exec('INSERT OR IGNORE INTO meta VALUES (0, ?, 1)', crypto.randomUUID());
    const meta = sql.exec<{ epoch: string; next: number }>('SELECT epoch, next FROM meta').one();
    this.epoch = meta.epoch;
    this.#next = meta.next;
    this.#count = sql.exec<{ n: number }>('SELECT count(*) AS n FROM ev').one().n;
  }

  /** Whether so many events fit without losing an old one. A strict tenant is refused when they do not. */
  hasRoom(events: number): boolean {
    return this.#count + events <= this.#bound;
  }

  /** Adds events, inside the caller's transaction. At the bound the oldest go, and a gap event says so. */
  add(events: readonly AuditEvent[], now: number): void {
    for (const event of events) {
      if (!this.hasRoom(1)) this.#loseOldest(now);
      this.#insert(event, now);
    }
    this.#sql.exec('UPDATE meta SET next = ?', this.#next);
  }

  page(after: number, limit: number): OutboxPage {
    const rows = this.#sql
      .exec<{ pseq: number; body: string; t: number }>(
        'SELECT pseq, body, t FROM ev WHERE pseq > ? ORDER BY pseq LIMIT ?',
        after,
        limit + 1,
      )
      .toArray();
    const shown = rows.slice(0, limit).map(({ pseq, body, t }) => ({ pseq, t, event: JSON.parse(body) as unknown }));
    const last = shown.at(-1);
    return { epoch: this.epoch, rows: shown, ...(rows.length > limit && last && { next: last.pseq }) };
  }

  #insert(event: AuditEvent, now: number): void {
    this.#sql.exec('INSERT INTO ev VALUES (?, ?, ?)', this.#next, bounded(event), now);
    this.#next += 1;
    this.#count += 1;
  }

  /** A hundredth at a time, so that a full outbox does not write one gap for each event. */
  #loseOldest(now: number): void {
    const share = Math.max(2, Math.ceil(this.#bound / 100));
    const lost = this.#sql
      .exec<{ pseq: number }>(
        'DELETE FROM ev WHERE pseq IN (SELECT pseq FROM ev ORDER BY pseq LIMIT ?) RETURNING pseq',
        share,
      )
      .toArray()
      .map(({ pseq }) => pseq);
    this.#count -= lost.length;
    const [from, to] = [Math.min(...lost), Math.max(...lost)];
    const id = eventId(now, crypto.getRandomValues(new Uint8Array(10)));
    this.#insert({ v: 1, type: 'gap', id, at: now, producer: 'edge', lost: lost.length, from, to }, now);
  }

  /** After a failed transaction: what was counted in memory may not have happened. */
  reload(): void {
    this.#next = this.#sql.exec<{ next: number }>('SELECT next FROM meta').one().next;
    this.#count = this.#sql.exec<{ n: number }>('SELECT count(*) AS n FROM ev').one().n;
  }
}

/** An event over the size of a leaf is a bug somewhere; its digest keeps the record whole and shows the bug. */
function bounded(event: AuditEvent): string {
  const body = JSON.stringify(event);
  if (Buffer.byteLength(body) <= limits.auditEventBytes.value) return body;
  const { v, type, id, at, producer } = event;
  const digest = createHash('sha256').update(body).digest('hex');
  return JSON.stringify({ v, type, id, at, producer, oversize: `sha256:${digest}` });
}
