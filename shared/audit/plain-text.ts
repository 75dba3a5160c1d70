// Words of people that go on record: shown one day on terminals and pages of others.
import { z } from 'zod';

/** No controls, no line ends of any kind, nothing that turns the direction of what is around it, no half characters. */
const PLAIN = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

export const plainText = (most: number) =>
  // Not as a pattern: few readers of a JSON Schema know classes of Unicode.
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => PLAIN.test(text), 'must be words in one line, without control characters');
