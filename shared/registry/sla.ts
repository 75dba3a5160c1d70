// Promise of a revision. Its author signs it, so that it cannot be lowered on the way.
import { z } from 'zod';

export const sla = z
  .object({
    latencyMs: z.number().positive().describe('95th percentile, milliseconds for a second of audio'),
    memoryBytes: z
      .number()
      .int()
      .positive()
      .describe('Memory that the engine needs in addition with the revision loaded'),
    wordErrors: z.number().min(0).max(1).describe('Share of words misrecognised, on the recordings of the gates'),
  })
  .partial()
  .strict()
  .refine((value) => Object.values(value).some((bound) => bound !== undefined), 'promises nothing');
export type Sla = z.infer<typeof sla>;

/** Returns the stricter of each member. */
export function strictest(one: Sla | undefined, other: Sla | undefined): Sla | undefined {
  if (!one || !other) return one ?? other;
  const all = new Set([...Object.keys(one), ...Object.keys(other)] as (keyof Sla)[]);
  const least = (of: keyof Sla) => Math.min(one[of] ?? Number.POSITIVE_INFINITY, other[of] ?? Number.POSITIVE_INFINITY);
  return Object.fromEntries([...all].map((of) => [of, least(of)]));
}

/** A missed promise. */
export const miss = z.object({
  of: z.enum(['latencyMs', 'memoryBytes', 'wordErrors']),
  promised: z.number(),
  found: z.number(),
});
export type Miss = z.infer<typeof miss>;

/** `latencyMs 130, promised 100`. */
export const showMisses = (misses: readonly Miss[]): string =>
  misses.map(({ of, promised, found }) => `${of} ${Number(found.toPrecision(4))}, promised ${promised}`).join('; ');
