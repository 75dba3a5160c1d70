import { z } from 'zod';

/** INCONCLUSIVE asks for more evidence, or for a person; it never promotes. */
export const verdict = z.enum(['PASS', 'FAIL', 'INCONCLUSIVE']);
export type Verdict = z.infer<typeof verdict>;
