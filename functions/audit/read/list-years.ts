// Lists the logs of a zone by year, from storage.
import type { LoggedYear } from '../../../shared/audit/logged-years.ts';
import { SEARCH_YEARS_MAX } from '../limits.ts';
import { newestState } from '../log/acknowledge.ts';
import { recordsOf, signedName, sizeOfRecord } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';

/** Records searched for the first commit of a log: each writer that lost the race left one before it. */
const FIRST_RECORDS_MAX = 16;

/** Facts that never change, cached by the process. */
interface Settled {
  /** Logs that have ended, by zone and year; `undefined` for a year that had none. */
  readonly ended: Map<string, LoggedYear | undefined>;
  /** First position of a log. */
  readonly first: Map<string, number>;
}

const settledIn = new WeakMap<LogStore, Settled>();

function settledOf(store: LogStore): Settled {
  const settled = settledIn.get(store) ?? { ended: new Map(), first: new Map() };
  settledIn.set(store, settled);
  return settled;
}

/** The newest first. */
export async function listYears(store: LogStore, zone: string): Promise<LoggedYear[]> {
  const state = await newestState(store, zone);
  if (!state) return [];
  const { year } = state;
  const size = await publishedSize({ store, zone, year });
  const newest = await describeYear(store, zone, { year, size, closed: state.closed === true && size === state.size });
  const years = Array.from({ length: SEARCH_YEARS_MAX }, (_, at) => year - 1 - at);
  // The newest log is published only after all earlier ones.
  const found = await Promise.all(years.map((one) => endedYear(store, zone, one, size > 0)));
  return [newest, ...found.flatMap((one) => one ?? [])];
}

async function endedYear(
  store: LogStore,
  zone: string,
  year: number,
  isSettled: boolean,
): Promise<LoggedYear | undefined> {
  const { ended } = settledOf(store);
  const key = `${zone}/${year}`;
  if (ended.has(key)) return ended.get(key);
  const size = await publishedSize({ store, zone, year });
  const found = size === 0 ? undefined : await describeYear(store, zone, { year, size, closed: true });
  if (isSettled) ended.set(key, found);
  return found;
}

async function describeYear(store: LogStore, zone: string, { year, size, closed }: LoggedYear): Promise<LoggedYear> {
  const first = size === 0 ? undefined : await firstSize(store, zone, year);
  return { year, ...(first !== undefined && { first }), size, closed };
}

/** Size of the first published commit. Record names sort by size; abandoned commits are among them. */
async function firstSize(store: LogStore, zone: string, year: number): Promise<number | undefined> {
  const { first } = settledOf(store);
  const key = `${zone}/${year}`;
  const known = first.get(key);
  if (known !== undefined) return known;
  for (const name of await store.list('log', recordsOf(zone, year), FIRST_RECORDS_MAX)) {
    const size = sizeOfRecord(name);
    if (size === undefined || !(await store.read('log', signedName(zone, year, size)))) continue;
    first.set(key, size);
    return size;
  }
  return undefined;
}
