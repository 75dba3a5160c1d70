// Who reads the record is on record, too. The first read of a kind is told before it is answered; those that follow within
// a minute are counted and told at its end, so that reading does not write more than it reads.
import { limits } from '../../../shared/limits.ts';
import { ok, type Result } from '../../../shared/result.ts';
import type { Reporter } from './report.ts';

export interface Reading {
  readonly zone: string;
  /** Whose token. */
  readonly tenant: string;
  /** Who held it, as a commitment. */
  readonly subject?: string | undefined;
  /** What kind of thing was read. */
  readonly action: string;
}

interface Counted {
  readonly reading: Reading;
  /** Since when, ms since 1970. */
  readonly since: number;
  count: number;
}

export class Reads {
  readonly #reporter: Pick<Reporter, 'report'>;
  readonly #now: () => number;
  readonly #counted = new Map<string, Counted>();

  constructor(reporter: Pick<Reporter, 'report'>, now: () => number) {
    this.#reporter = reporter;
    this.#now = now;
  }

  /** Before the answer. A refusal: it is not to be answered. */
  async note(reading: Reading): Promise<Result<unknown>> {
    const key = JSON.stringify([reading.zone, reading.tenant, reading.action, reading.subject]);
    const known = this.#counted.get(key);
    if (known) {
      known.count += 1;
      return ok(undefined);
    }
    const since = this.#now();
    const told = await this.#tell({ reading, since, count: 1 });
    // Readers beyond the bound are told of one by one.
    if (told.ok && this.#counted.size < limits.auditReadersCounted.value && !this.#counted.has(key)) {
      this.#counted.set(key, { reading, since, count: 0 });
    }
    return told;
  }

  /** Each minute, and when the process ends: what was counted since. */
  async flush(): Promise<void> {
    const counted = [...this.#counted];
    for (const [key, one] of counted) {
      this.#counted.delete(key);
      if (one.count === 0 || (await this.#tell(one)).ok) continue;
      // Told with the next ones.
      const newer = this.#counted.get(key)?.count ?? 0;
      this.#counted.set(key, { ...one, count: one.count + newer });
    }
  }

  #tell({ reading: { zone, tenant, action, subject }, since, count }: Counted): Promise<Result<unknown>> {
    const named = subject !== undefined && { subject };
    return this.#reporter.report(zone, { type: 'access.audit', tenant, action, zone, count, since, ...named });
  }
}
