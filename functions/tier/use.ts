// Uses of a revision's files: one row by day, in the partition of its model.
import { z } from 'zod';
import { endOf, type Rows } from '../store/rows.ts';

/** Days of which uses are counted. */
export const USE_DAYS = 30;
const DAY_MS = 86_400_000;

const use = z.object({
  /** Last use, ms since 1970. */
  at: z.number().int(),
  /** Uses by day since 1970, for USE_DAYS. */
  days: z.array(z.tuple([z.number().int(), z.number().int()])).max(USE_DAYS),
});
export type Use = z.infer<typeof use>;

const USES = 'u!';
const keyOf = (revision: string): string => `${USES}${revision}`;

/** Counts a use. Of two at the same time one may stay uncounted, since both have the same time. */
export async function noteUse(rows: Rows, model: string, revision: string, now: number): Promise<void> {
  const value = afterUse(await readUse(rows, model, revision), now);
  await rows.commit(model, [{ type: 'put', key: keyOf(revision), value }]);
}

async function readUse(rows: Rows, model: string, revision: string): Promise<Use | undefined> {
  const row = await rows.read(model, keyOf(revision));
  return row && use.parse(row.value);
}

/** Returns the uses of a model's revisions, at most `limit`. */
export async function readUses(rows: Rows, model: string, limit: number): Promise<ReadonlyMap<string, Use>> {
  const found = await rows.scan(model, USES, endOf(USES), limit);
  return new Map(found.map(({ key, value }) => [key.slice(USES.length), use.parse(value)]));
}

export function afterUse(before: Use | undefined, now: number): Use {
  const today = Math.floor(now / DAY_MS);
  const counts = new Map(before?.days.filter(([day]) => day > today - USE_DAYS));
  counts.set(today, (counts.get(today) ?? 0) + 1);
  return { at: Math.max(now, before?.at ?? 0), days: [...counts] };
}

/** Returns the uses of the last USE_DAYS. */
export const usesOf = ({ days }: Use, now: number): number =>
  days.reduce((sum, [day, count]) => sum + (day > Math.floor(now / DAY_MS) - USE_DAYS ? count : 0), 0);
