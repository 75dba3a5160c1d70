import { z } from 'zod';

/** Parses JSON; returns `undefined` for invalid text, which no schema accepts. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Text that holds JSON of that shape, as settings and bindings carry it. */
export const jsonText = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((text, context): unknown => {
      const json = jsonOf(text);
      if (json !== undefined) return json;
      context.addIssue('is not JSON');
      return z.NEVER;
    })
    .pipe(schema);
