// Dependencies of erasure around a readable log.
import type { EraseContext } from '../../../functions/audit/erase/erase-context.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { openReporter } from '../../../functions/audit/report/report.ts';
import { openHide } from '../../../functions/audit/sidecar/hide.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { type HiddenLog, ZONE } from './hidden-log.ts';

/** Never rings: storage answers at once here, or fails. */
const silent = () => ({ elapsed: new Promise<never>(() => {}), cancel() {} });

/** Rows that could not be continued. */
export const failures: unknown[] = [];

/** The desk of one process, which begins with nothing in memory. */
export function deskOf(log: HiddenLog, store: LogStore = log.store): EraseContext {
  const keys = log.newKeys(store);
  const now = () => log.now;
  const reporter = openReporter({ store, hide: () => openHide(keys), now, after: silent });
  return {
    ...{ zone: ZONE, store, keys, now },
    index: { count: async () => 2, forget: async () => {} },
    withdrawExports: async () => {},
    report: (draft) => reporter.report(ZONE, draft),
    failed: (error) => void failures.push(error),
  };
}

/** Returns the leaves of a type once everything waiting is in the log. */
export async function toldOf(log: HiddenLog, type: string): Promise<Leaf[]> {
  await log.commit();
  return log.read().leaves.filter((leaf) => leaf.type === type);
}
