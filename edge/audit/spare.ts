import { DurableObject } from 'cloudflare:workers';
import type { AuditEvent } from '../../shared/audit/event.ts';
import type { Bindings } from '../settings.ts';
import { type Commitments, openCommitments } from '../tenant/subject.ts';
import { Outbox, type OutboxPage } from './outbox.ts';
import { Rest } from './rest.ts';
import { Shipper } from './ship.ts';

/**
 * The second place for a gate's events: another object of the same zone, asked when the gate does not answer in time. It
 * knows no allowance and delivers what it has to the same log, which recognises what the gate had all the same by its id.
 * Called by edge isolates only. Lost with its storage, which its numbers in the log show.
 */
export class Spare extends DurableObject<Bindings> {
  readonly #outbox: Outbox;
  readonly #shipper: Shipper;
  readonly #rest: Rest;
  readonly #commitments: Commitments;

  constructor(ctx: DurableObjectState, env: Bindings) {
    super(ctx, env);
    const { sql } = ctx.storage;
    this.#outbox = new Outbox(sql, undefined, env.AUDIT_LOGS !== undefined);
    const { name } = ctx.id;
    this.#shipper = new Shipper(this.#outbox, sql, env, name === undefined ? undefined : `spare/${name}`);
    this.#rest = new Rest(ctx.storage, this.#outbox, this.#shipper);
    // Of its own: the gate's cannot be asked for when it is needed. The same caller looks like another one here.
    this.#commitments = openCommitments(sql);
  }

  /** On disk when the answer leaves. False when there is no room: here, too, nothing is dropped for a strict tenant. */
  record(events: readonly AuditEvent[]): boolean {
    if (!this.#outbox.hasRoom(events.length + 1)) return false;
    const now = Date.now();
    try {
      this.ctx.storage.transactionSync(() => {
        const hidden = events.map((event) => this.#commitments.hide(event));
        this.#outbox.add(hidden, now);
      });
    } catch (error) {
      this.#outbox.reload();
      throw error;
    }
    this.#shipper.nudge();
    this.#rest.wrote(now);
    return true;
  }

  /** What stands for a subject in the events of this spare. */
  commitmentOf(subject: string): string {
    return this.#commitments.of(subject);
  }

  /** For operators and tests. */
  outbox(after: number, limit: number): OutboxPage {
    return this.#outbox.page(after, limit);
  }

  alarm(): void {
    this.#rest.ring(Date.now());
  }
}
