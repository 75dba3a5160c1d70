import { z } from 'zod';
import type { AuditEvent } from '../../shared/audit/event.ts';

/** Months that a gate remembers: an invoice of three years ago is no longer disputed. */
const USAGE_MONTHS = 36;
/** Ids of the last ended requests: an isolate repeats a report within minutes. */
const RECENT_MAX = 4_096;

/** A calendar month in UTC, as `2026-11`. */
export const MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/;

/** Returns the month of a time, epoch ms. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** Usage of one tenant in one month at one pool. */
export const usageRow = z.object({
  pool: z.string().describe('Pool that served the requests; empty for uploads, projects and calls without one'),
  requests: z.number().int().describe('Requests that were served'),
  seconds: z.number().describe('Seconds of audio that were recognised or spoken, of failed requests, too'),
});
export type UsageRow = z.infer<typeof usageRow>;

/**
 * Usage of the tenant of a gate by month and pool, counted from the ends of its requests as they are written. Loss of
 * the storage resets it; an end that is repeated after a restart of the object counts twice.
 */
export class Usage {
  readonly #sql: SqlStorage;
  /** Ids of counted ends, oldest first. */
  readonly #recent = new Set<string>();
  /** Ids of the transaction that runs. */
  #fresh: readonly string[] = [];

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS usage (month TEXT, pool TEXT, requests INTEGER NOT NULL, seconds REAL NOT NULL, ' +
        'PRIMARY KEY (month, pool)) WITHOUT ROWID',
    );
  }

  /** Counts the ends among `events`, inside the transaction that writes them. */
  write(events: readonly AuditEvent[]): void {
    const pools = new Map(events.flatMap((event) => (event.type === 'route' ? [[event.request, event.pool]] : [])));
    const fresh = new Set<string>();
    for (const event of events) {
      if (event.type !== 'inference.complete' || this.#recent.has(event.id) || fresh.has(event.id)) continue;
      fresh.add(event.id);
      const { at, request, reason, audioSeconds = 0 } = event;
      if (reason !== undefined && audioSeconds === 0) continue;
      this.#sql.exec(
        'INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET ' +
          'requests = requests + excluded.requests, seconds = seconds + excluded.seconds',
        ...[monthOf(at), pools.get(request) ?? '', reason === undefined ? 1 : 0, audioSeconds],
      );
    }
    this.#fresh = [...fresh];
  }

  /** Confirms the ends after the transaction. Returns whether there were some. */
  written(now: number): boolean {
    for (const id of this.#fresh) this.#recent.add(id);
    for (const id of this.#recent) {
      if (this.#recent.size <= RECENT_MAX) break;
      this.#recent.delete(id);
    }
    const isUsed = this.#fresh.length > 0;
    this.#fresh = [];
    if (isUsed) this.#forget(now);
    return isUsed;
  }

  #forget(now: number): void {
    const oldest = new Date(now);
    oldest.setUTCMonth(oldest.getUTCMonth() - USAGE_MONTHS, 1);
    this.#sql.exec('DELETE FROM usage WHERE month < ?', monthOf(oldest.getTime()));
  }

  read(month: string): UsageRow[] {
    const query = 'SELECT pool, requests, seconds FROM usage WHERE month = ? ORDER BY pool';
    return this.#sql.exec<UsageRow>(query, month).toArray();
  }
}
