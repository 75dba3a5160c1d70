import { z } from 'zod';
import { type Reason, refusals } from '../../shared/refusal.ts';

/** OpenAI's error object, the form of every refusal over HTTP and in streams. */
export const errorBody = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    /** The field at fault. */
    param: z.string().nullable(),
    code: z.enum(Object.keys(refusals) as [Reason, ...Reason[]]),
  }),
});
