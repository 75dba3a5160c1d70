// Words of people that go on record: shown one day on terminals and pages of others.
import { z } from 'zod';

/** No controls, no line ends of any kind, nothing that turns the direction of what is around it, no half characters. */
const PLAIN = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

/** The same for readers of JSON Schema, few of which know classes of Unicode; JSON in UTF-8 has no half characters. */
const DESCRIBED = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$';

export const plainText = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => PLAIN.test(text), 'must be words in one line, without control characters')
    .meta({ pattern: DESCRIBED });
