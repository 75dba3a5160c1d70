// Years that a key signs. One key of each type signs a year's log, and the next key takes over with a year.
// Only a leaked key changes within a year; then that year's policy names both, and the witnesses tell two
// histories apart.
import { z } from 'zod';
import { logYear } from './logged-years.ts';

/** Log keys of all years in one setting: one a year, and a few replaced within a year, over decades. */
const KEY_YEARS_MAX = 50;

/** Public halves: 32 bytes of Ed25519 or the SPKI of P-256, in base64. */
export const keyYears = z
  .array(
    z
      .strictObject({
        key: z.base64().refine((text) => isEd25519Text(text) || text.length === 124, 'no public key of a log'),
        from: logYear.optional(),
        until: logYear.optional(),
      })
      .refine(({ from = 0, until = 9_999 }) => from <= until, 'its years end before they begin'),
  )
  .max(KEY_YEARS_MAX)
  .refine((all) => new Set(all.map(({ key }) => key)).size === all.length, 'a key twice');
export type KeyYears = z.infer<typeof keyYears>;

export const isEd25519Text = (key: string): boolean => key.length === 44;

/** Reports whether a key signs that year. A key without years signs all. */
export function signsIn(years: KeyYears, key: string, year: number): boolean {
  const range = years.find((one) => one.key === key);
  return year >= (range?.from ?? 0) && year <= (range?.until ?? 9_999);
}

/** Returns the keys of that year, `own` before others. */
export const keysIn = (years: KeyYears, own: readonly string[], year: number): string[] =>
  [...new Set([...own, ...years.map(({ key }) => key)])].filter((key) => signsIn(years, key, year));

/** Returns the year in the name of a log's key, including those for acknowledgements and exports. */
export function yearOfName(name: string): number | undefined {
  const [, year] = /\/(\d{4})(?:\/(?:ack|export))?$/.exec(name) ?? [];
  return year === undefined ? undefined : Number(year);
}
