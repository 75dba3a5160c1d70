// Retention timer: continues interrupted holds and erasures, carries out due erasures, and destroys expired
// periods.

import { settleErasures } from '../audit/erase/erase.ts';
import { settleHolds } from '../audit/erase/hold.ts';
import type { PrivacyContext, ZoneContext } from '../audit/erase/open-privacy.ts';
import { endPeriods } from './end-periods.ts';

export const onRetention = (context: PrivacyContext): Promise<void> =>
  inEach(context, async (zone) => {
    // A failing step does not delay the others.
    await settleHolds(zone).catch(zone.failed);
    const done = await settleErasures(zone).catch(zone.failed);
    const ended = await endPeriods(zone).catch(zone.failed);
    const entries = (done ?? 0) + (ended?.destroyed ?? 0);
    if (entries > 0) context.log.log({ what: 'erased', zone: zone.zone, entries });
  });

/** Runs `work` in every zone; a failing zone does not delay the others. */
async function inEach({ zones }: PrivacyContext, work: (zone: ZoneContext) => Promise<void>): Promise<void> {
  await Promise.all(zones.map((zone) => work(zone).catch(zone.failed)));
}
