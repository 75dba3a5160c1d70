import { DurableObject } from 'cloudflare:workers';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type AllowanceState, type Ask, freshAllowance, renew, settle, take } from '../../shared/tenant/allowance.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { Outbox, type OutboxPage } from '../audit/outbox.ts';

/**
 * One tenant in one zone: its allowance and the record of what it did, changed together or not at all.
 * Callers are edge isolates only. If this object is lost, so are its counters (they start at zero) and the events
 * not yet taken over by the log.
 */
export class Gate extends DurableObject {
  #allowance: AllowanceState;
  readonly #outbox: Outbox;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    const { sql } = ctx.storage;
    this.#outbox = new Outbox(sql);
    sql.exec('CREATE TABLE IF NOT EXISTS allowance (id INTEGER PRIMARY KEY CHECK (id = 0), state TEXT NOT NULL)');
    const [row] = sql.exec<{ state: string }>('SELECT state FROM allowance').toArray();
    this.#allowance = row ? (JSON.parse(row.state) as AllowanceState) : freshAllowance;
  }

  /**
   * Takes a place and writes the attempt in one step. Repeating it with the same `ask.id` changes nothing.
   * A refusal takes nothing; the caller records it with `record`.
   */
  take(ask: Ask, mode: Claims['audit'], attempt: readonly AuditEvent[]): Result<undefined, Refusal> {
    const now = Date.now();
    const held = Object.hasOwn(this.#allowance.leases, ask.id);
    const taken = take(this.#allowance, ask, now);
    if (!taken.ok) return taken;
    if (held) return ok(undefined);
    if (mode === 'strict' && this.#outbox.full) return no(refuse('audit_unavailable', undefined, 'the outbox is full'));
    this.#write(taken.value, attempt, now);
    return ok(undefined);
  }

  /** Keeps the place of work that is still going on. */
  renew(id: string): void {
    this.#write(renew(this.#allowance, id, Date.now()), [], Date.now());
  }

  /** Gives the place back, books the audio and writes how it ended. */
  settle(id: string, audioSeconds: number, events: readonly AuditEvent[]): void {
    const now = Date.now();
    this.#write(settle(this.#allowance, id, audioSeconds, now), events, now);
  }

  /** Writes events that concern no place. */
  record(events: readonly AuditEvent[]): void {
    this.#write(this.#allowance, events, Date.now());
  }

  /** Events after position `after`, oldest first. For operators and tests. */
  outbox(after: number, limit: number): OutboxPage {
    return this.#outbox.page(after, limit);
  }

  #write(next: AllowanceState, events: readonly AuditEvent[], now: number): void {
    const { storage } = this.ctx;
    try {
      storage.transactionSync(() => {
        if (next !== this.#allowance) {
          storage.sql.exec('INSERT OR REPLACE INTO allowance VALUES (0, ?)', JSON.stringify(next));
        }
        if (events.length > 0) this.#outbox.add(events, now);
      });
    } catch (error) {
      this.#outbox.reload();
      throw error;
    }
    this.#allowance = next;
  }
}
