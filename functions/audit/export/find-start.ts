// Finds the first entry at or after a time, by binary search.
import { readLeafFacts } from '../../../shared/audit/verify/leaf-facts.ts';
import type { LogFiles } from '../log/log-files.ts';

/** The last bundle that begins before `from`, in ms since 1970: what is before it is older than that. */
export async function findStart(log: LogFiles, from: number): Promise<number> {
  let [low, high] = [0, log.bundles - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [entry] = await log.entries(middle);
    const facts = entry && readLeafFacts(new TextDecoder().decode(entry));
    if (!facts) throw new Error(`the first entry of bundle ${middle} is no leaf`);
    if (facts.time < from) low = middle;
    else high = middle - 1;
  }
  return low;
}
