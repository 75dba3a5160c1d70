// The first leaf of a log, and the log before it that this one goes on from.
import { type LogEnd, previousOf, yearIn } from '../../../shared/audit/bundle/previous.ts';
import { tileWith, unpackEntries } from '../../../shared/audit/tile.ts';
import { readLeafFacts } from '../../../shared/audit/verify/leaf-facts.ts';
import type { LogStore } from './log-store.ts';
import { publishedSize } from './publish-checkpoint.ts';
import { readParts } from './read-tile.ts';

/** `undefined` of the first log of all. Throws when the log has no entry yet. */
export async function readPrevious(
  store: LogStore,
  zone: string,
  year: number,
): Promise<(LogEnd & { readonly year: number }) | undefined> {
  const place = { store, zone, year };
  const size = await publishedSize(place);
  const [entry] = await readParts(place, { ...tileWith(0, 0, size), level: 'entries' }, unpackEntries);
  const facts = entry && readLeafFacts(new TextDecoder().decode(entry));
  const previous = facts && previousOf(facts.leaf);
  const before = previous && yearIn(previous.origin);
  return previous && before !== undefined ? { ...previous, year: before } : undefined;
}
