// Every few minutes: holds and erasures that broke off go on, what waited for its time is erased, and what has been kept long
// enough is destroyed.

import { settleErasures } from '../audit/erase/erase.ts';
import type { PrivacyDesk, ZoneDesk } from '../audit/erase/erase-desks.ts';
import { settleHolds } from '../audit/erase/hold.ts';
import { endPeriods } from './end-periods.ts';

export const onRetention = (desk: PrivacyDesk): Promise<void> =>
  inEach(desk, async (zone) => {
    // One step's trouble must not keep the others waiting.
    await settleHolds(zone).catch(zone.failed);
    const done = await settleErasures(zone).catch(zone.failed);
    const ended = await endPeriods(zone).catch(zone.failed);
    const entries = (done ?? 0) + (ended?.destroyed ?? 0);
    if (entries > 0) desk.log.log({ what: 'erased', zone: zone.zone, entries });
  });

/** One region's trouble must not keep the others waiting. */
async function inEach({ zones }: PrivacyDesk, work: (zone: ZoneDesk) => Promise<void>): Promise<void> {
  await Promise.all(zones.map((zone) => work(zone).catch(zone.failed)));
}
