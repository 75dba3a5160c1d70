// Lists the years that have a log in a zone.
import type { LogStore } from './log-store.ts';
import { publishedSize } from './publish-checkpoint.ts';

/** From one to another, both included, the oldest first. */
export async function yearsBetween(store: LogStore, zone: string, from: number, to: number): Promise<number[]> {
  const years = Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
  const sizes = await Promise.all(years.map((year) => publishedSize({ store, zone, year })));
  return years.filter((_, at) => (sizes[at] as number) > 0);
}

/** Year of the log that follows the log of `year`; it exists for the newest log too, published or not. */
export async function yearAfter(
  store: LogStore,
  zone: string,
  year: number,
  newest: number,
): Promise<number | undefined> {
  if (year >= newest) return undefined;
  const [next = newest] = await yearsBetween(store, zone, year + 1, newest - 1);
  return next;
}
