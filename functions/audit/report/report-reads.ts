// Records reads of the audit log. The first read of a kind is reported before its answer; those of the
// following minute are counted and reported at its end, so that reading writes less than it reads. Beyond a
// bound of readers in a tenant, the others are reported as one, without a name.
import { ok, type Result } from '../../../shared/result.ts';
import type { Reporter } from './report.ts';

/**
 * Log entries about first reads of one tenant per READS_COUNTED_MS: subjects cost a token issuer nothing. The
 * rest share one entry.
 */
export const AUDIT_READS_PER_TENANT_MAX = 32;
/** Pairs of reader and kind whose reads are counted by the minute instead of recorded one by one. */
const READERS_COUNTED_MAX = 1_024;

export interface Reading {
  readonly zone: string;
  /** Tenant of the token. */
  readonly tenant: string;
  /** Commitment of the reader. */
  readonly subject?: string | undefined;
  /** Kind of the read. */
  readonly action: string;
}

interface Counted {
  readonly reading: Reading;
  /** Since when, ms since 1970. */
  readonly since: number;
  count: number;
}

/** Action of readers that are reported as one. */
const OTHERS = 'others';

export class Reads {
  readonly #reporter: Pick<Reporter, 'report'>;
  readonly #now: () => number;
  readonly #counted = new Map<string, Counted>();
  /** First reads whose report is in flight; equal reads wait for it. */
  readonly #reporting = new Map<string, Promise<Result<unknown>>>();
  /** By zone and tenant: number of first reads reported since the last `flush`. */
  #firsts = new Map<string, number>();

  constructor(reporter: Pick<Reporter, 'report'>, now: () => number) {
    this.#reporter = reporter;
    this.#now = now;
  }

  /** Before the answer. A refusal: it is not to be answered. */
  async note(reading: Reading): Promise<Result<unknown>> {
    const key = keyOf(reading);
    if (this.#count(key)) return ok(undefined);
    const pending = this.#reporting.get(key);
    const reported = pending && (await pending);
    if (reported && (!reported.ok || this.#count(key))) return reported;
    const owner = JSON.stringify([reading.zone, reading.tenant]);
    const firsts = this.#firsts.get(owner) ?? 0;
    const { zone, tenant, action } = reading;
    const isOne = action === OTHERS;
    if (!isOne && firsts >= AUDIT_READS_PER_TENANT_MAX) return this.note({ zone, tenant, action: OTHERS });
    if (!isOne) this.#firsts.set(owner, firsts + 1);
    const reporting = this.#first(key, reading);
    this.#reporting.set(key, reporting);
    try {
      return await reporting;
    } finally {
      if (this.#reporting.get(key) === reporting) this.#reporting.delete(key);
    }
  }

  #count(key: string): boolean {
    const known = this.#counted.get(key);
    if (known) known.count += 1;
    return known !== undefined;
  }

  async #first(key: string, reading: Reading): Promise<Result<unknown>> {
    const since = this.#now();
    const reported = await this.#report({ reading, since, count: 1 });
    // Reads beyond the bound are reported one by one, except those of `OTHERS`, of which a tenant has one in
    // a zone.
    const room = reading.action === OTHERS || this.#counted.size < READERS_COUNTED_MAX;
    if (reported.ok && room && !this.#counted.has(key)) this.#counted.set(key, { reading, since, count: 0 });
    return reported;
  }

  /** Each minute, and when the process ends: what was counted since. */
  async flush(): Promise<void> {
    this.#firsts = new Map();
    const counted = [...this.#counted];
    for (const [key, one] of counted) {
      this.#counted.delete(key);
      if (one.count === 0 || (await this.#report(one)).ok) continue;
      // The next report includes them.
      const newer = this.#counted.get(key)?.count ?? 0;
      this.#counted.set(key, { ...one, count: one.count + newer });
    }
  }

  #report({ reading: { zone, tenant, action, subject }, since, count }: Counted): Promise<Result<unknown>> {
    const named = subject !== undefined && { subject };
    return this.#reporter.report(zone, { type: 'access.audit', tenant, action, zone, count, since, ...named });
  }
}

const keyOf = ({ zone, tenant, action, subject }: Reading): string => JSON.stringify([zone, tenant, action, subject]);
