// What has been kept long enough: the secret of its class, month and tenant is destroyed, and nothing opens any more that was
// hidden then. Leaves stay. One round does a bounded part; the log is told before anything is destroyed, so what breaks off is
// told twice and never not at all.
import { isRetention, keptUntil, type RetentionName, retentionNames } from '../../shared/audit/retention.ts';
import { limits } from '../../shared/limits.ts';
import type { EraseDesk } from '../audit/erase-desk.ts';
import { hasHolds } from '../audit/hold-state.ts';
import { periodsPrefix } from '../audit/sidecar-names.ts';

interface Period {
  readonly name: string;
  readonly ret: RetentionName;
  readonly month: string;
  readonly tenant: string;
}

export interface Ended {
  readonly destroyed: number;
  /** Over, but held by somebody. */
  readonly held: number;
}

/** One round. */
export async function endPeriods(desk: EraseDesk): Promise<Ended> {
  const { store, zone, keys, report, now } = desk;
  let destroyed = 0;
  let held = 0;
  const holds = new Map<string, Promise<boolean>>();
  const isHeld = (tenant: string) => {
    const asked = holds.get(tenant) ?? hasHolds(store, zone, tenant);
    holds.set(tenant, asked);
    return asked;
  };
  for (const { name, ret, month, tenant } of await findEnded(desk, now())) {
    if (destroyed >= limits.auditPeriodsPerRound.value) break;
    if (await isHeld(tenant)) {
      held += 1;
      continue;
    }
    const told = await report({ type: 'erasure.exec', tenant, outcome: 'done', basis: `${ret} ${month}` });
    if (!told.ok) break;
    await store.remove('sidecar', name);
    destroyed += 1;
  }
  if (destroyed > 0) keys.forget();
  return { destroyed, held };
}

/** By rising month of each class. */
async function findEnded({ store, zone }: EraseDesk, now: number): Promise<Period[]> {
  const listed = await Promise.all(
    retentionNames.map((ret) => store.list('sidecar', periodsPrefix(zone, ret), limits.auditPeriodsListed.value)),
  );
  return listed.flat().flatMap((name): Period[] => {
    const [ret, month = '', part = ''] = name.slice(periodsPrefix(zone).length).split('/');
    const over = isRetention(ret) && keptUntil(ret, month) <= now;
    return over ? [{ name, ret, month, tenant: decodeURIComponent(part) }] : [];
  });
}
