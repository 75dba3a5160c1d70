import { z } from 'zod';

/** INCONCLUSIVE needs more evidence, or a person; it never promotes. */
export const verdict = z.enum(['PASS', 'FAIL', 'INCONCLUSIVE']);
export type Verdict = z.infer<typeof verdict>;
