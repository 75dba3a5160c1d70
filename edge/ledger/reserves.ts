import type { AuditEvent } from '../../shared/audit/event.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { Amount } from './allowance.ts';
import { LEASE_MS } from './allowance.ts';
import { leasedQuota, type Quota } from './quota.ts';
import { type Attempt, createAttemptEvent } from './request-events.ts';
import type { Report, ReserveLease } from './reserve.ts';
import { RESERVE_MS } from './reserve.ts';

/** Gates of which an isolate holds a reserve. */
const RESERVES_MAX = 1_024;

/** A report of requests that began from a reserve, without a call to the gate. */
export interface ReportStep {
  readonly kind: 'report';
  readonly report: Report;
  readonly allowance: Claims['allowance'];
  readonly events: readonly AuditEvent[];
}

/** The reserve of this isolate at one gate, and the events that are not reported yet. */
interface Own {
  holder: string;
  seq: number;
  places: number;
  starts: number;
  /** Audio seconds left today. */
  seconds: number;
  /** End of the reserve, ms since 1970 by this isolate's clock, counted from the report that requested it. */
  until: number;
  /** Requests with a slot of the reserve, and the expiry of each slot unless renewed; oldest first. */
  readonly active: Map<string, number>;
  /** Peak of concurrent requests since the last report, including those with single leases. */
  peak: number;
  single: number;
  allowance: Claims['allowance'];
  /** Requests whose attempt no report contains yet. */
  began: Map<string, Attempt>;
  ended: string[];
  spent: number;
  audioSeconds: number;
  events: AuditEvent[];
  /** A report is due. */
  news: boolean;
  /** Report in flight, and its start. */
  sent: { readonly step: ReportStep; readonly at: number } | undefined;
  /** Time of the promise of the next report, ms since 1970. */
  promised: number | undefined;
  /** The quota in the gate's last answer. */
  quota: Quota | undefined;
  /** Earliest time of the next request for a reserve: the tenant is too small, or too busy. */
  retryAt: number;
}

interface ReservedRequest {
  readonly id: string;
  readonly attempt: Attempt;
  readonly allowance: Claims['allowance'];
}

/**
 * Reserves of this isolate, by gate. Plain data, so that any request can continue the work of another; slots
 * of a dropped request expire like leases. No method waits.
 */
export class Reserves {
  readonly #own = new Map<string, Own>();

  /** Begins a request within the reserve. False: the request needs a lease of the gate. */
  enter(name: string, { id, attempt, allowance }: ReservedRequest, now: number): boolean {
    const own = this.#get(name, allowance);
    if (own.starts < 1 || own.active.size >= own.places || own.seconds <= 0 || now >= own.until) return false;
    own.starts -= 1;
    own.spent += 1;
    own.active.set(id, now + LEASE_MS);
    own.peak = Math.max(own.peak, own.active.size + own.single);
    own.began.set(id, attempt);
    own.news = true;
    return true;
  }

  /** Returns what is left of the allowance, for a request that `enter` began. */
  quota(name: string, now: number): Quota | undefined {
    const own = this.#own.get(name);
    return own?.quota && leasedQuota(own.quota, own, now);
  }

  /** Stores the quota that the gate reported. */
  noteQuota(name: string, quota: Quota): void {
    const own = this.#own.get(name);
    if (own) own.quota = quota;
  }

  /** Counts a request with a single lease, which shows the demand for a reserve. */
  enterSingle(name: string, allowance: Claims['allowance']): void {
    const own = this.#get(name, allowance);
    own.single += 1;
    own.peak = Math.max(own.peak, own.active.size + own.single);
  }

  leaveSingle(name: string, audioSeconds: number): void {
    const own = this.#own.get(name);
    if (!own) return;
    own.single = Math.max(0, own.single - 1);
    own.seconds -= audioSeconds;
  }

  /** Renews the slot of a running request. */
  renew(name: string, id: string, now: number): void {
    const { active } = this.#own.get(name) ?? {};
    if (active?.delete(id)) active.set(id, now + LEASE_MS);
  }

  note(name: string, events: readonly AuditEvent[]): void {
    const own = this.#own.get(name);
    if (!own) return;
    own.events.push(...events);
    own.news = true;
  }

  /** Ends a request that `enter` began. Returns its attempt if no report has it; the caller then reports it. */
  leave(name: string, id: string, audioSeconds: number): Attempt | undefined {
    const own = this.#own.get(name);
    if (!own) return undefined;
    own.active.delete(id);
    const attempt = own.began.get(id);
    // The gate never learns of a request that begins and ends between two reports.
    if (attempt) own.began.delete(id);
    else own.ended.push(id);
    own.audioSeconds += audioSeconds;
    own.seconds -= audioSeconds;
    own.news = true;
    return attempt;
  }

  /**
   * Makes the caller responsible for the next report; false when there is no need. No other request becomes
   * responsible within twice `waitMs` (AUDIT_WAIT_MS).
   */
  promise(name: string, now: number, waitMs: number): boolean {
    const own = this.#own.get(name);
    if (!own?.news) return false;
    // The promise of a dropped request expires.
    if (own.promised !== undefined && now - own.promised < 2 * waitMs) return false;
    own.promised = now;
    return true;
  }

  /** Reports whether there is usage that no report in flight contains. */
  hasNews(name: string): boolean {
    return this.#own.get(name)?.news ?? false;
  }

  /** Returns the next report, one at a time. `eager`: also when it only requests a reserve. */
  report(name: string, now: number, eager: boolean): ReportStep | undefined {
    const own = this.#own.get(name);
    if (!own || own.sent || !(own.news || (eager && now >= own.retryAt))) return undefined;
    for (const [id, until] of own.active) {
      if (until > now) break;
      // The request was dropped, and the gate has its slot back.
      own.active.delete(id);
    }
    const usable = now < own.until;
    const wanted = 2 * own.peak;
    const keep: Amount = {
      places: Math.max(own.active.size, usable ? Math.min(own.places, wanted) : 0),
      starts: usable ? own.starts : 0,
    };
    own.seq += 1;
    const began = [...own.began].map(([id, attempt]) => {
      own.events.push(createAttemptEvent(attempt));
      const { tenant, action } = attempt.fields;
      return { id, tenant, action };
    });
    const report: Report = {
      holder: own.holder,
      seq: own.seq,
      keep,
      want: {
        places: Math.max(0, wanted - keep.places),
        starts: Math.max(0, 4 * Math.max(wanted, own.spent) - keep.starts),
      },
      spent: own.spent,
      began,
      ended: own.ended,
      audioSeconds: own.audioSeconds,
    };
    const { allowance, events } = own;
    const step: ReportStep = { kind: 'report', report, allowance, events };
    const reported = { began: new Map(), ended: [], spent: 0, audioSeconds: 0, events: [], news: false };
    Object.assign(own, keep, reported);
    own.peak = own.active.size + own.single;
    own.promised = undefined;
    own.sent = { step, at: now };
    return step;
  }

  /** Applies the gate's answer to a report. */
  onAnswer(name: string, { report: { holder, seq } }: ReportStep, grant: ReserveLease, now: number): void {
    const own = this.#own.get(name);
    if (!own?.sent || own.holder !== holder || own.seq !== seq) return;
    const { at } = own.sent;
    own.sent = undefined;
    if (!grant) {
      this.#startOver(own);
      return;
    }
    own.places = grant.places;
    // Starts since the report was made are not in it.
    own.starts = Math.max(0, grant.starts - own.spent);
    own.seconds = grant.seconds - own.audioSeconds;
    own.until = at + RESERVE_MS;
    if (grant.starts === 0) own.retryAt = now + RESERVE_MS;
  }

  /**
   * Starts over after a report without an answer, which its sender keeps. A reserve in the lost answer is not
   * used.
   */
  lost(name: string, { report: { holder, seq } }: ReportStep): void {
    const own = this.#own.get(name);
    if (own?.sent && own.holder === holder && own.seq === seq) this.#startOver(own);
  }

  /**
   * Returns, for the backlog, a report without an answer after twice `waitMs`: the runtime dropped its
   * request.
   */
  takeStray(name: string, now: number, waitMs: number): ReportStep | undefined {
    const own = this.#own.get(name);
    if (!own?.sent || now - own.sent.at < 2 * waitMs) return undefined;
    const { step } = own.sent;
    this.#startOver(own);
    return step;
  }

  /**
   * Takes a new holder name; the gate reclaims the reserve of the old one. Reported requests continue with
   * leases of their own. Unreported ones are reported under the new name, so they stay counted.
   */
  #startOver(own: Own): void {
    for (const id of own.active.keys()) if (!own.began.has(id)) own.active.delete(id);
    Object.assign(own, { holder: crypto.randomUUID(), seq: 0, places: 0, starts: 0, until: 0, sent: undefined });
  }

  #get(name: string, allowance: Claims['allowance']): Own {
    const known = this.#own.get(name);
    if (known) {
      known.allowance = allowance;
      return known;
    }
    if (this.#own.size >= RESERVES_MAX) this.#forgetOne();
    const own: Own = {
      holder: crypto.randomUUID(),
      seq: 0,
      places: 0,
      starts: 0,
      seconds: 0,
      until: 0,
      active: new Map(),
      peak: 0,
      single: 0,
      allowance,
      began: new Map(),
      ended: [],
      spent: 0,
      audioSeconds: 0,
      events: [],
      news: false,
      sent: undefined,
      promised: undefined,
      quota: undefined,
      retryAt: 0,
    };
    this.#own.set(name, own);
    return own;
  }

  /** Removes the oldest gate without a running request; the gate reclaims its reserve by expiry. */
  #forgetOne(): void {
    for (const [name, { active, news, sent }] of this.#own) {
      if (active.size > 0 || news || sent) continue;
      this.#own.delete(name);
      return;
    }
  }
}
