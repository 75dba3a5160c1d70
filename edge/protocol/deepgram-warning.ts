import { z } from 'zod';

/** Deepgram's warning about a parameter that has no effect. */
export const warning = z.object({ parameter: z.string(), type: z.literal('unsupported_model'), message: z.string() });
export type Warning = z.infer<typeof warning>;

export const warnOf = (parameter: string, message: string): Warning => ({
  parameter,
  type: 'unsupported_model',
  message,
});
