// What has been kept long enough: the secret of its class, month and tenant is destroyed, and nothing opens any more that was
// hidden then. Leaves stay. One round does a bounded part; the log is told before anything is destroyed, so what breaks off is
// told twice and never not at all.
import { isMonth, keptUntil, type Month, type RetentionName, retentionNames } from '../../shared/audit/retention.ts';
import { limits } from '../../shared/limits.ts';
import type { EraseDesk } from '../audit/erase/erase-desk.ts';
import { endingName, endingPrefix, hasHolds } from '../audit/erase/hold-state.ts';
import { periodsPrefix } from '../audit/sidecar/sidecar-names.ts';

interface Period {
  readonly name: string;
  readonly ret: RetentionName;
  readonly month: Month;
  readonly tenant: string;
}

export interface Ended {
  readonly destroyed: number;
  /** Over, but held by somebody. */
  readonly held: number;
}

/** One round. Rounds do not overlap: the timer rings in one process. */
export async function endPeriods(desk: EraseDesk): Promise<Ended> {
  const { store, zone, keys, now } = desk;
  // Of rounds that broke off.
  const marks = await store.list('sidecar', endingPrefix(zone), limits.auditPeriodsPerRound.value);
  for (const mark of marks) await store.remove('sidecar', mark);
  const held = new Set<string>();
  let [destroyed, kept] = [0, 0];
  for await (const period of findEnded(desk, now())) {
    if (destroyed >= limits.auditPeriodsPerRound.value) break;
    const done = held.has(period.tenant) ? 'held' : await end(desk, period);
    if (done === 'untold') break;
    if (done === 'destroyed') destroyed += 1;
    if (done !== 'held') continue;
    held.add(period.tenant);
    kept += 1;
  }
  if (destroyed > 0) keys.forget();
  return { destroyed, held: kept };
}

async function end(desk: EraseDesk, period: Period): Promise<'destroyed' | 'held' | 'untold' | 'failed'> {
  const { store, zone, report } = desk;
  const { name, ret, month, tenant } = period;
  const mark = endingName(zone, tenant);
  try {
    if (await hasHolds(store, zone, tenant)) return 'held';
    await store.create('sidecar', mark, new Uint8Array());
    // A hold that this does not see finds the mark: it is told of only when this is over.
    if (await hasHolds(store, zone, tenant)) return 'held';
    const told = await report({ type: 'erasure.exec', tenant, outcome: 'done', basis: `${ret} ${month}` });
    if (!told.ok) return 'untold';
    await store.remove('sidecar', name);
    return 'destroyed';
  } catch (error) {
    desk.failed(error);
    return 'failed';
  } finally {
    // Where this fails the next round does it.
    await store.remove('sidecar', mark).catch(desk.failed);
  }
}

/** By rising month of each class: those that are held are not in the way of later ones. */
async function* findEnded({ store, zone }: EraseDesk, now: number): AsyncGenerator<Period> {
  for (const ret of retentionNames) {
    const prefix = periodsPrefix(zone, ret);
    const [first] = await store.list('sidecar', prefix, 1);
    let month = first?.slice(prefix.length).split('/')[0] ?? '';
    while (isMonth(month) && keptUntil(ret, month) <= now) {
      const names = await store.list('sidecar', `${prefix}${month}/`, limits.auditPeriodsListed.value);
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
