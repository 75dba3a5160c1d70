import { z } from 'zod';

/** INCONCLUSIVE asks for more to judge by, or for a person; it never promotes. */
export const verdict = z.enum(['PASS', 'FAIL', 'INCONCLUSIVE']);
export type Verdict = z.infer<typeof verdict>;
