import { DurableObject } from 'cloudflare:workers';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type AllowanceState, type Ask, freshAllowance, renew, settle, take } from '../../shared/tenant/allowance.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { Outbox, type OutboxPage } from '../audit/outbox.ts';

/** What a caller may ask of a gate. */
export type GateStep =
  /**
   * Takes a place and writes the attempt. Repeating it with the same `ask.id` changes nothing. A refusal takes and
   * writes nothing; the caller records it.
   */
  | { kind: 'take'; ask: Ask; mode: Claims['audit']; events: readonly AuditEvent[] }
  /** Keeps the place of work that is still going on. */
  | { kind: 'renew'; id: string; events: readonly [] }
  /** Gives the place back, books the audio and writes how it ended. */
  | { kind: 'settle'; id: string; audioSeconds: number; events: readonly AuditEvent[] }
  /** Writes events that concern no place. */
  | { kind: 'record'; events: readonly AuditEvent[] };

interface Decided {
  readonly state: AllowanceState;
  readonly events: readonly AuditEvent[];
}

/** A refusal can only come from a `take`. */
export type GateAnswer = Result<undefined>;

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
   * Several callers' steps in their order, as one: they are written together or not at all, and answered in the same
   * order. One call and one write for many requests is what makes the gate cheap for a busy tenant.
   */
  apply(steps: readonly GateStep[]): GateAnswer[] {
    const now = Date.now();
    const events: AuditEvent[] = [];
    let state = this.#allowance;
    const answers = steps.map((step): GateAnswer => {
      const decided = this.#decide(state, step, events.length, now);
      if (!decided.ok) return decided;
      state = decided.value.state;
      events.push(...decided.value.events);
      return ok(undefined);
    });
    this.#write(state, events, now);
    return answers;
  }

  /** What a step changes and writes, or why not. `pending` events of earlier steps will be written before its own. */
  #decide(state: AllowanceState, step: GateStep, pending: number, now: number): Result<Decided> {
    const { events } = step;
    switch (step.kind) {
      case 'take': {
        const held = Object.hasOwn(state.leases, step.ask.id);
        const taken = take(state, step.ask, now);
        if (!taken.ok) return taken;
        if (held) return ok({ state: taken.value, events: [] });
        if (step.mode === 'strict' && !this.#outbox.hasRoom(pending + events.length)) {
          return no(refuse('audit_unavailable', undefined, 'the outbox is full'));
        }
        return ok({ state: taken.value, events });
      }
      case 'renew':
        return ok({ state: renew(state, step.id, now), events });
      case 'settle':
        return ok({ state: settle(state, step.id, step.audioSeconds, now), events });
      case 'record':
        return ok({ state, events });
    }
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
