// Free text that enters the record and may be shown on others' terminals and pages.
import { z } from 'zod';

/** Excludes control characters, line ends of any kind, bidirectional controls and lone surrogates. */
const PLAIN = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

/**
 * The same for JSON Schema readers, few of which support Unicode classes. JSON in UTF-8 has no lone
 * surrogates.
 */
const DESCRIBED = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$';

export const plainText = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => PLAIN.test(text), 'must be words in one line, without control characters')
    .meta({ pattern: DESCRIBED });
