// The logs of a zone, year by year, as they lie in storage: so that whoever verifies one finds all of them.
import type { LoggedYear } from '../../../shared/audit/logged-years.ts';
import { limits } from '../../../shared/limits.ts';
import { newestState } from '../intake/acknowledge.ts';
import { recordsOf, signedName, sizeOfRecord } from './log-names.ts';
import type { LogStore } from './log-store.ts';
import { publishedSize } from './publish-checkpoint.ts';

/** The newest first. */
export async function listYears(store: LogStore, zone: string): Promise<LoggedYear[]> {
  const state = await newestState(store, zone);
  if (!state) return [];
  const years = Array.from({ length: limits.auditSearchYears.value + 1 }, (_, at) => state.year - at);
  const found = await Promise.all(
    years.map(async (year): Promise<LoggedYear[]> => {
      const size = await publishedSize({ store, zone, year });
      if (size === 0 && year !== state.year) return [];
      const first = size === 0 ? undefined : await firstSize(store, zone, year);
      const closed = year < state.year || (state.closed === true && size === state.size);
      return [{ year, ...(first !== undefined && { first }), size, closed }];
    }),
  );
  return found.flat();
}

/** Of the first commit that was published: names of records are in the order of their sizes, those of commits that never were among them. */
async function firstSize(store: LogStore, zone: string, year: number): Promise<number | undefined> {
  for (const name of await store.list('log', recordsOf(zone, year), limits.auditFirstRecords.value)) {
    const size = sizeOfRecord(name);
    if (size !== undefined && (await store.read('log', signedName(zone, year, size)))) return size;
  }
  return undefined;
}
