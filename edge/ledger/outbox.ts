import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';
import { KiB } from '../../shared/bytes.ts';
import { createDraft, type DraftOf } from './create-event.ts';

/** Leaf of the log; larger events are a bug and are replaced by their digest. */
export const AUDIT_EVENT_BYTES = 16 * KiB;
/** Events that share one row of an outbox; with 16 KiB each it is inside the limit of SQLite. */
export const OUTBOX_ROW_EVENTS_MAX = 64;
/**
 * Events of an outbox, about 200 MiB of storage; beyond it strict tenants are refused, others lose the oldest
 * with a gap event.
 */
export const OUTBOX_EVENTS_MAX = 200_000;

const outboxRow = z.object({
  /** Position in this outbox: grows by one, is never reused, so a missing number is a missing event. */
  pseq: z.number().int(),
  /** Time of writing, epoch ms. */
  t: z.number().int(),
  event: z.unknown(),
});

export const outboxPage = z.object({
  /** Epoch of the producer that the numbers belong to. */
  epoch: z.string(),
  rows: z.array(outboxRow),
  /** Total number of rows. */
  waiting: z.number().int(),
  /** Pass as `after` to read on; absent at the end. */
  next: z.number().int().optional(),
});
export type OutboxPage = z.infer<typeof outboxPage>;

/**
 * Audit events that a Durable Object stores until the log has them. An inserted row is durable once the
 * object's answer leaves, since the runtime holds answers back until then. Events that arrive together share
 * a row, up to `OUTBOX_ROW_EVENTS_MAX`: a row costs many times what an event does. A row has the number of
 * its last event. The owning object alone reads and writes it. A loss of the object's storage shows as a gap
 * in `pseq`.
 */
export class Outbox {
  readonly #sql: SqlStorage;
  readonly #bound: number;
  #count: number;
  #next: number;
  /** Reports whether the log knows that the producer is open; undefined without a log. */
  #open: boolean | undefined;
  readonly epoch: string;

  /** `rests`: announces begin and rest of the producer to the log. */
  constructor(sql: SqlStorage, bound: number = OUTBOX_EVENTS_MAX, rests = false) {
    this.#sql = sql;
    this.#bound = bound;
    sql.exec('CREATE TABLE IF NOT EXISTS meta (id INTEGER PRIMARY KEY CHECK (id = 0), epoch TEXT, next INTEGER)');
    sql.exec('CREATE TABLE IF NOT EXISTS ev (pseq INTEGER PRIMARY KEY, body TEXT NOT NULL, t INTEGER NOT NULL)');
    sql.exec('INSERT OR IGNORE INTO meta VALUES (0, ?, 1)', crypto.randomUUID());
    const meta = sql.exec<{ epoch: string; next: number }>('SELECT epoch, next FROM meta').one();
    this.epoch = meta.epoch;
    this.#next = meta.next;
    this.#count = this.#countAll();
    if (!rests) return;
    sql.exec('CREATE TABLE IF NOT EXISTS life (id INTEGER PRIMARY KEY CHECK (id = 0), open INTEGER NOT NULL)');
    sql.exec('INSERT OR IGNORE INTO life VALUES (0, 0)');
    this.#open = this.#readOpen();
  }

  /** Reports whether so many events fit without losing an old one. Otherwise a strict tenant is refused. */
  hasRoom(events: number): boolean {
    return this.#count + events <= this.#bound;
  }

  /** Adds events, inside the caller's transaction. At the bound it drops the oldest and adds a gap event. */
  add(events: readonly AuditEvent[], now: number): void {
    if (events.length === 0) return;
    if (this.#open === false) this.#say({ type: 'producer.open' }, now);
    const rowEvents = Math.min(OUTBOX_ROW_EVENTS_MAX, this.#bound);
    for (let at = 0; at < events.length; at += rowEvents) {
      const row = events.slice(at, at + rowEvents).map(bounded);
      this.#insert(row.length, row.join(','), now);
    }
    this.#sql.exec('UPDATE meta SET next = ?', this.#next);
  }

  /** Reports whether it announced its begin, and no rest since. */
  get isOpen(): boolean {
    return this.#open === true;
  }

  /** Announces a rest, inside the caller's transaction. Requires an empty outbox. */
  rest(now: number): void {
    if (!this.#open || !this.isEmpty) return;
    this.#say({ type: 'producer.close', last: this.#next }, now);
    this.#sql.exec('UPDATE meta SET next = ?', this.#next);
  }

  #say(draft: DraftOf<'producer.open'> | DraftOf<'producer.close'>, now: number): void {
    this.#insert(1, JSON.stringify(createDraft(draft, now)), now);
    this.#open = draft.type === 'producer.open';
    this.#sql.exec('UPDATE life SET open = ?', Number(this.#open));
  }

  #readOpen(): boolean {
    return this.#sql.exec<{ open: number }>('SELECT open FROM life').one().open === 1;
  }

  page(after: number, limit: number): OutboxPage {
    const rows = this.#sql.exec<Row>(
      'SELECT pseq, body, t FROM ev WHERE pseq > ? ORDER BY pseq LIMIT ?',
      after,
      limit + 1,
    );
    const found: OutboxPage['rows'] = [];
    for (const { pseq, body, t } of rows) {
      const events = eventsOf(body);
      const first = pseq - events.length + 1;
      for (const [at, event] of events.entries()) if (first + at > after) found.push({ pseq: first + at, t, event });
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    return {
      epoch: this.epoch,
      rows: shown,
      waiting: this.#count,
      ...(found.length > limit && last && { next: last.pseq }),
    };
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Number of the oldest stored event, or of the next one. */
  get oldest(): number {
    return this.#next - this.#count;
  }

  /**
   * Returns rows after position `after` for a delivery, as JSON text: at most `characters`, but always one
   * row.
   */
  rows(after: number, limit: number, characters: number): { readonly json: string; readonly last: number } | undefined {
    const found = this.#sql.exec<Row>(
      'SELECT pseq, body, t FROM ev WHERE pseq > ? ORDER BY pseq LIMIT ?',
      after,
      limit,
    );
    const texts: string[] = [];
    let [last, room] = [after, characters];
    for (const { pseq, body, t } of found) {
      const events = eventsText(body);
      room -= events.length;
      if (room < 0 && texts.length > 0) break;
      texts.push(`{"to":${pseq},"t":${t},"events":${events}}`);
      last = pseq;
    }
    return texts.length > 0 ? { json: texts.join(','), last } : undefined;
  }

  /** Deletes events up to `upTo`, which the log has. */
  forget(upTo: number): void {
    this.#sql.exec('DELETE FROM ev WHERE pseq <= ?', upTo);
    this.#count = this.#countAll();
  }

  #insert(count: number, json: string, now: number): void {
    if (!this.hasRoom(count)) this.#loseOldest(count, now);
    this.#put(count, json, now);
  }

  #put(count: number, json: string, now: number): void {
    this.#next += count;
    this.#count += count;
    this.#sql.exec('INSERT INTO ev VALUES (?, ?, ?)', this.#next - 1, count === 1 ? json : `[${json}]`, now);
  }

  /**
   * Drops a hundredth at a time in whole rows, so that a full outbox does not write one gap for each event.
   */
  #loseOldest(room: number, now: number): void {
    const share = Math.max(1 + room, Math.ceil(this.#bound / 100));
    const [from, rows] = [
      this.#next - this.#count,
      this.#sql.exec<Row>('SELECT * FROM ev ORDER BY pseq LIMIT ?', share),
    ];
    let to = from - 1;
    for (const { pseq } of rows) {
      to = pseq;
      if (to - from + 1 >= share) break;
    }
    const lost = to - from + 1;
    this.#sql.exec('DELETE FROM ev WHERE pseq <= ?', to);
    this.#count -= lost;
    const id = eventId(now, crypto.getRandomValues(new Uint8Array(10)));
    this.#put(1, bounded({ v: 1, type: 'gap', id, at: now, producer: 'edge', lost, from, to }), now);
  }

  /** Resets counts after a failed transaction, which may not have happened. */
  reload(): void {
    this.#next = this.#sql.exec<{ next: number }>('SELECT next FROM meta').one().next;
    this.#count = this.#countAll();
    if (this.#open !== undefined) this.#open = this.#readOpen();
  }

  /** Counts events by the oldest number, since numbers are consecutive. */
  #countAll(): number {
    const [oldest] = this.#sql.exec<Row>('SELECT pseq, body, t FROM ev ORDER BY pseq LIMIT 1').toArray();
    return oldest ? this.#next - (oldest.pseq - eventsOf(oldest.body).length + 1) : 0;
  }
}

type Row = {
  pseq: number;
  body: string;
  t: number;
};

function eventsOf(body: string): unknown[] {
  const value: unknown = JSON.parse(body);
  return Array.isArray(value) ? value : [value];
}

/** Returns the events of a row as the text of a JSON array. */
const eventsText = (body: string): string => (body.startsWith('[') ? body : `[${body}]`);

/**
 * Replaces an event over the size of a leaf, which is a bug, by its digest. The record stays whole and shows
 * the bug.
 */
function bounded(event: AuditEvent): string {
  const body = JSON.stringify(event);
  // A UTF-16 unit takes at most three bytes.
  const most = AUDIT_EVENT_BYTES;
  if (body.length * 3 <= most || Buffer.byteLength(body) <= most) return body;
  const { v, type, id, at, producer } = event;
  const digest = createHash('sha256').update(body).digest('hex');
  return JSON.stringify({ v, type, id, at, producer, oversize: `sha256:${digest}` });
}
