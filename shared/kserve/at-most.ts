import { z } from 'zod';

function sizeOf(given: unknown): number {
  if (Array.isArray(given)) return given.length;
  return typeof given === 'object' && given !== null ? Object.keys(given).length : 0;
}

/** An array or a record that is counted before anything in it is looked at: a bound of the schema's own comes after. */
export const atMost = <T extends z.ZodType>(most: number, what: string, schema: T) =>
  z
    .unknown()
    .refine((given) => sizeOf(given) <= most, { error: `over ${most} ${what}` })
    .pipe(schema);
