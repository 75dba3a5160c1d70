// Crypto-shredding of expired retention periods: destroys the secret of a class, month and tenant, after
// which no reader can open the values hidden in that month. Leaves stay. One round does a bounded part. The
// log records a period before its secret is destroyed, so an interrupted round repeats the record and never
// omits it.

import type { EraseContext } from '../audit/erase/erase-context.ts';
import { endingName, endingPrefix, hasHolds } from '../audit/erase/hold-state.ts';
import { isMonth, type Month, type RetentionName, retainedUntil, retentionNames } from '../audit/sidecar/retention.ts';
import { periodsPrefix } from '../audit/sidecar/sidecar-names.ts';

/** Months of a tenant and class that one round of retention ends: a write and a removal each. */
export const PERIODS_PER_ROUND_MAX = 64;
/** Tenants that one round reads for each class and expired month: more than a log has room for. */
const PERIODS_LISTED_MAX = 16_384;

interface Period {
  readonly name: string;
  readonly ret: RetentionName;
  readonly month: Month;
  readonly tenant: string;
}

export interface Ended {
  readonly destroyed: number;
  /** Expired periods under a legal hold. */
  readonly held: number;
}

/** Runs one round. Rounds do not overlap: one process owns the timer. */
export async function endPeriods(context: EraseContext): Promise<Ended> {
  const { store, zone, keys, now } = context;
  // Marks of interrupted rounds.
  const marks = await store.list('sidecar', endingPrefix(zone), PERIODS_PER_ROUND_MAX);
  for (const mark of marks) await store.remove('sidecar', mark);
  const held = new Set<string>();
  let [destroyed, kept] = [0, 0];
  for await (const period of findEnded(context, now())) {
    if (destroyed >= PERIODS_PER_ROUND_MAX) break;
    const done = held.has(period.tenant) ? 'held' : await end(context, period);
    if (done === 'untold') break;
    if (done === 'destroyed') destroyed += 1;
    if (done !== 'held') continue;
    held.add(period.tenant);
    kept += 1;
  }
  if (destroyed > 0) keys.forget();
  return { destroyed, held: kept };
}

async function end(context: EraseContext, period: Period): Promise<'destroyed' | 'held' | 'untold' | 'failed'> {
  const { store, zone, report } = context;
  const { name, ret, month, tenant } = period;
  const mark = endingName(zone, tenant);
  try {
    if (await hasHolds(store, zone, tenant)) return 'held';
    await store.create('sidecar', mark, new Uint8Array());
    // A hold placed after this check finds the mark, and is confirmed only once this period has ended.
    if (await hasHolds(store, zone, tenant)) return 'held';
    const reported = await report({ type: 'erasure.exec', tenant, outcome: 'done', basis: `${ret} ${month}` });
    if (!reported.ok) return 'untold';
    await store.remove('sidecar', name);
    return 'destroyed';
  } catch (error) {
    context.failed(error);
    return 'failed';
  } finally {
    // The next round removes the mark if this fails.
    await store.remove('sidecar', mark).catch(context.failed);
  }
}

/** Finds expired periods by rising month of each class; held ones do not block later ones. */
async function* findEnded({ store, zone }: EraseContext, now: number): AsyncGenerator<Period> {
  for (const ret of retentionNames) {
    const prefix = periodsPrefix(zone, ret);
    const [first] = await store.list('sidecar', prefix, 1);
    let month = first?.slice(prefix.length).split('/')[0] ?? '';
    while (isMonth(month) && retainedUntil(ret, month) <= now) {
      const names = await store.list('sidecar', `${prefix}${month}/`, PERIODS_LISTED_MAX);
      for (const name of names) {
        const tenant = decodeURIComponent(name.slice(name.lastIndexOf('/') + 1));
        yield { name, ret, month, tenant };
      }
      month = after(month);
    }
  }
}

const after = (month: string): string =>
  month.endsWith('12') ? `${Number(month.slice(0, 4)) + 1}01` : String(Number(month) + 1);
