import { DurableObject } from 'cloudflare:workers';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { PRODUCER_IDLE_MS } from '../../shared/audit/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims, TokenShare } from '../../shared/tenant/claims.ts';
import { type Commitments, openCommitments } from '../auth/subject.ts';
import type { GateMethods } from '../objects.ts';
import type { Bindings } from '../settings.ts';
import {
  type AdmissionRequest,
  type AllowanceState,
  book,
  expire,
  freshAllowance,
  nextExpiry,
  renew,
  settle,
  take,
} from './allowance.ts';
import { Booked } from './booked.ts';
import { createEvent } from './create-event.ts';
import type { GateAnswer, GateStep } from './gate-step.ts';
import type { KeyClaim, KeyDecision, KeyOutcome } from './idempotency.ts';
import { IdempotencyKeys } from './idempotency-keys.ts';
import { Outbox, type OutboxPage } from './outbox.ts';
import { type Quota, quotaOf, refusalWithRetry } from './quota.ts';
import { type ReserveLease, report } from './reserve.ts';
import { quotaOfShare, takeShare } from './share.ts';
import { Shares } from './shares.ts';
import { DELIVERY_RETRY_MAX_MS, Shipper } from './ship.ts';
import { monthOf, Usage, type UsageRow } from './usage.ts';

/**
 * Time the events of a buffered tenant stay in memory only; one write for all costs as much as one for each
 * would.
 */
const GATE_WRITE_MS = 20;

interface Decided {
  readonly state: AllowanceState;
  readonly events: readonly AuditEvent[];
  readonly grant?: ReserveLease;
}

interface Opened {
  readonly outbox: Outbox;
  readonly shipper: Shipper;
  readonly booked: Booked;
  readonly shares: Shares;
  readonly keys: IdempotencyKeys;
  readonly usage: Usage;
  readonly commitments: Commitments;
}

/**
 * Allowance and audit record of one tenant in one zone, changed in one transaction. Its callers are edge
 * isolates only. Loss of this object loses its counters (they restart at zero) and the events that the log
 * has not taken over. A crash loses the events of a buffered tenant in the last `GATE_WRITE_MS`.
 *
 * Every attempt ends: when its lease expires because its isolate died, the gate writes `inference.unknown` in
 * the transaction that frees the slot. A late report of that isolate is written, too.
 */
export class Gate extends DurableObject<Bindings> implements GateMethods {
  #allowance: AllowanceState;
  /** The allowance on disk. */
  #written: AllowanceState;
  /** Events not yet on disk. */
  #unwritten: AuditEvent[] = [];
  #writing: ReturnType<typeof setTimeout> | undefined;
  /** Time of the next alarm, ms since 1970, as far as this instance knows; the alarm expires leases. */
  #alarm: number | undefined;
  /** The alarm only lets the outbox rest. */
  #resting = false;
  /** Last write of events by this instance, ms since 1970. */
  #eventsAt = 0;
  /** Month in which the Roster has the tenant's name, and the month that it lacks. */
  #listed: string | undefined;
  #unlisted: string | undefined;
  #opened: Opened | undefined;

  constructor(ctx: DurableObjectState, env: Bindings) {
    super(ctx, env);
    const { sql } = ctx.storage;
    this.#allowance = freshAllowance;
    this.#written = freshAllowance;
    if (sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'allowance'").toArray().length > 0) this.#open();
  }

  /** Opens the storage. An unused gate has none, and reading it creates none. */
  #open(): Opened {
    const { storage, id } = this.ctx;
    const { sql } = storage;
    const outbox = new Outbox(sql, undefined, this.env.AUDIT_LOGS !== undefined);
    const producer = id.name === undefined ? undefined : `gate/${id.name}`;
    const shipper = new Shipper(outbox, sql, this.env, producer);
    const booked = new Booked(sql);
    const shares = new Shares(sql);
    sql.exec('CREATE TABLE IF NOT EXISTS allowance (id INTEGER PRIMARY KEY CHECK (id = 0), state TEXT NOT NULL)');
    const [row] = sql.exec<{ state: string }>('SELECT state FROM allowance').toArray();
    this.#allowance = row ? (JSON.parse(row.state) as AllowanceState) : freshAllowance;
    this.#written = this.#allowance;
    const keys = new IdempotencyKeys(sql);
    const usage = new Usage(sql);
    this.#opened = { outbox, shipper, booked, shares, keys, usage, commitments: openCommitments(sql) };
    return this.#opened;
  }

  get #outbox(): Outbox {
    return (this.#opened ?? this.#open()).outbox;
  }

  get #shipper(): Shipper {
    return (this.#opened ?? this.#open()).shipper;
  }

  get #booked(): Booked {
    return (this.#opened ?? this.#open()).booked;
  }

  get #shares(): Shares {
    return (this.#opened ?? this.#open()).shares;
  }

  get #keys(): IdempotencyKeys {
    return (this.#opened ?? this.#open()).keys;
  }

  get #usage(): Usage {
    return (this.#opened ?? this.#open()).usage;
  }

  get #commitments(): Commitments {
    return (this.#opened ?? this.#open()).commitments;
  }

  /**
   * Applies the steps of several callers in order, in one transaction, and answers in the same order. With a
   * strict step among them the transaction is durable when the answer leaves. Otherwise the gate decides in
   * memory and writes within `GATE_WRITE_MS`: a write costs several times a decision, and a buffered
   * tenant is served even when storage is unavailable.
   */
  apply(steps: readonly GateStep[]): GateAnswer[] {
    const now = Date.now();
    this.#booked.forget();
    const shares = this.#shares.mark();
    const current = this.#expire(now);
    const events: AuditEvent[] = [...current.events];
    let { state } = current;
    const answers = steps.map((step): GateAnswer => {
      const decided = this.#decide(state, step, events, now);
      if (decided.ok) state = decided.value.state;
      const quota = this.#quotaAfter(state, step, now);
      if (!decided.ok) return { ...decided, ...quota };
      for (const event of decided.value.events) events.push(this.#commitments.hide(event));
      return { ...ok(decided.value.grant), ...quota };
    });
    if (steps.some((step) => 'mode' in step && step.mode === 'strict')) {
      try {
        this.#write(state, [...this.#unwritten, ...events], now);
      } catch (error) {
        this.#shares.restore(shares);
        throw error;
      }
      return answers;
    }
    this.#allowance = state;
    for (const event of events) this.#unwritten.push(event);
    this.#writeSoon();
    return answers;
  }

  /**
   * Decides a step: the new state and its events, or a refusal. `pending`: events of earlier steps, written
   * first.
   */
  #decide(state: AllowanceState, step: GateStep, pending: readonly AuditEvent[], now: number): Result<Decided> {
    const { events } = step;
    switch (step.kind) {
      case 'take': {
        const held = Object.hasOwn(state.leases, step.ask.id);
        const taken = take(state, step.ask, now);
        if (!taken.ok) return no(this.#refusalOf(taken.refusal, state, step.ask, now));
        if (held) return ok({ state: taken.value, events: [] });
        if (step.mode === 'strict' && !this.#outbox.hasRoom(this.#unwritten.length + pending.length + events.length)) {
          return no(refuse('audit_unavailable', undefined, 'the outbox is full'));
        }
        const { share } = step.ask;
        const own = share && this.#shares.take(state, { ...step.ask, share }, now);
        return own && !own.ok ? own : ok({ state: taken.value, events });
      }
      case 'renew':
        return ok({ state: renew(state, step.id, now), events });
      case 'settle': {
        const share = state.leases[step.id]?.share;
        if (share !== undefined) this.#shares.book(share, step.audioSeconds, now);
        return ok({ state: settle(state, step.id, step.audioSeconds, now), events });
      }
      case 'book':
        if (!this.#booked.add(step.id)) return ok({ state, events: [] });
        return ok({ state: book(state, step.audioSeconds, now), events });
      case 'record':
        return ok({ state, events });
      case 'report': {
        const reported = report(state, step.report, step.allowance, now);
        if (!reported.grant) return ok({ ...reported, events: [] });
        return ok({ ...reported, events });
      }
    }
  }

  /** Returns the refusal with the longer wait: the tenant's, or that of the token's own allowance. */
  #refusalOf(refusal: Refusal, state: AllowanceState, request: AdmissionRequest, now: number): Refusal {
    const timed = refusalWithRetry(refusal, state, request.allowance, now);
    const { share } = request;
    const own = share && takeShare(this.#shares.of(share.id), state, { ...request, share }, now);
    return own && !own.ok && (own.refusal.retryAfter ?? 0) > (timed.retryAfter ?? 0) ? own.refusal : timed;
  }

  /** Returns what is left of the allowance; counts nothing. */
  quota(allowance: Claims['allowance'], share?: TokenShare): Quota {
    const now = Date.now();
    const quota = quotaOf(this.#allowance, allowance, now);
    // A gate without storage has counted nothing; a read must not create any.
    return share ? quotaOfShare(quota, this.#opened?.shares.of(share.id), share, now) : quota;
  }

  #quotaAfter(state: AllowanceState, step: GateStep, now: number): { readonly quota?: Quota } {
    if (step.kind === 'report') return { quota: quotaOf(state, step.allowance, now) };
    if (step.kind !== 'take') return {};
    const { allowance, share } = step.ask;
    const quota = quotaOf(state, allowance, now);
    return { quota: share ? quotaOfShare(quota, this.#shares.of(share.id), share, now) : quota };
  }

  /** Expires leases when no call does. */
  alarm(): void {
    this.#alarm = undefined;
    this.#resting = false;
    this.#list();
    const now = Date.now();
    const { state, events } = this.#expire(now);
    if (events.length > 0) this.#write(state, [...this.#unwritten, ...events], now);
    else if (now - this.#eventsAt >= PRODUCER_IDLE_MS) this.#rest(now);
    this.#setAlarm();
  }

  /** Returns the state without expired leases, and an event `inference.unknown` for each of their attempts. */
  #expire(now: number): Decided {
    const { state, lost } = expire(this.#allowance, now);
    const events = lost.map(({ id, tenant, action }) =>
      createEvent({ type: 'inference.unknown', tenant, request: id, action }, now),
    );
    return { state, events };
  }

  /** Adds the tenant to those of the month at the Roster of the zone; the next write or alarm tries again. */
  #list(): void {
    const month = this.#unlisted;
    const [tenant = '', zone] = (this.ctx.id.name ?? '').split('/');
    if (month === undefined || zone === undefined || tenant.startsWith('@')) return;
    this.#unlisted = undefined;
    const listed = this.env.ROSTER.getByName(zone).addTenant(month, tenant);
    this.ctx.waitUntil(
      listed.then(
        () => {
          this.#listed = month;
        },
        () => {
          this.#unlisted ??= month;
        },
      ),
    );
  }

  #rest(now: number): void {
    if (this.#unwritten.length > 0) return;
    try {
      this.ctx.storage.transactionSync(() => this.#outbox.rest(now));
    } catch (error) {
      this.#outbox.reload();
      throw error;
    }
    this.#shipper.nudge();
  }

  /** Sets one alarm: leases expire in the order of their last renewal. */
  #setAlarm(): void {
    if (this.#alarm !== undefined && !this.#resting) return;
    // The alarm also wakes an evicted object that has events to deliver.
    const retry = this.#shipper.hasWork ? Date.now() + DELIVERY_RETRY_MAX_MS : undefined;
    const next = nextExpiry(this.#allowance) ?? retry;
    if (next === undefined && (this.#resting || !this.#outbox.isOpen)) return;
    this.#resting = next === undefined;
    this.#alarm = next ?? Date.now() + PRODUCER_IDLE_MS;
    this.ctx.storage.setAlarm(this.#alarm).catch(() => {
      // The next write tries again.
      this.#alarm = undefined;
    });
  }

  /**
   * Returns events after position `after`, oldest first; an empty page from an unused gate. For operators and
   * tests.
   */
  outbox(after: number, limit: number): OutboxPage {
    if (!this.#opened) return { epoch: '', rows: [], waiting: 0 };
    if (this.#unwritten.length > 0) this.#write(this.#allowance, this.#unwritten, Date.now());
    return this.#outbox.page(after, limit);
  }

  /** Returns the usage of a month by pool; an unused gate has none. */
  usage(month: string): UsageRow[] {
    if (this.#unwritten.length > 0) this.#write(this.#allowance, this.#unwritten, Date.now());
    return this.#opened?.usage.read(month) ?? [];
  }

  /** Claims an Idempotency-Key for a request; durable when the answer leaves. */
  claimKey(claim: KeyClaim): KeyDecision {
    return this.#keys.claim(claim, Date.now());
  }

  /** Renews the key of a request whose file still passes through the edge. */
  renewKey(key: string, run?: string): void {
    this.#keys.renew(key, Date.now(), run);
  }

  /** Ends a run with a key; returns whether that frees the key. */
  endKey(key: string, outcome: KeyOutcome, content?: string, run?: string): boolean {
    return this.#keys.end(key, outcome, { content, run });
  }

  /** The commitment of a subject in the events of this gate, for erasure, holds and exports. */
  commitmentOf(subject: string): string {
    return this.#commitments.of(subject);
  }

  #writeSoon(): void {
    this.#writing ??= setTimeout(() => {
      this.#writing = undefined;
      try {
        this.#write(this.#allowance, this.#unwritten, Date.now());
      } catch (error) {
        // The events stay in memory; the next step tries again.
        console.error('gate', error instanceof Error ? error.name : 'unknown error');
      }
    }, GATE_WRITE_MS);
  }

  /** Writes state and events in one transaction; a failure leaves memory unchanged, too. */
  #write(next: AllowanceState, events: readonly AuditEvent[], now: number): void {
    const { storage } = this.ctx;
    try {
      storage.transactionSync(() => {
        if (next !== this.#written) {
          storage.sql.exec('INSERT OR REPLACE INTO allowance VALUES (0, ?)', JSON.stringify(next));
        }
        if (events.length > 0) this.#outbox.add(events, now);
        this.#booked.write(now);
        this.#usage.write(events);
        this.#shares.write(now);
      });
    } catch (error) {
      this.#outbox.reload();
      this.#booked.forget();
      throw error;
    }
    this.#shares.written();
    if (this.#usage.written(now) && this.#listed !== monthOf(now)) this.#unlisted = monthOf(now);
    this.#allowance = next;
    this.#written = next;
    this.#unwritten = [];
    if (events.length > 0) this.#eventsAt = now;
    this.#list();
    this.#shipper.nudge();
    this.#setAlarm();
  }
}
