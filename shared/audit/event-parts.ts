// Members common to several kinds of events.
import { z } from 'zod';

/**
 * Members of every event. No member can hold audio, a transcript or a token. `subject` is stored as a
 * commitment: `c1:` and, in hex, the HMAC-SHA-256 of the token's subject under a random salt of its tenant,
 * which stays in the tenant's Gate.
 */
export const origin = {
  v: z.literal(1),
  /** Time-ordered unique id (UUID version 7, RFC 9562). */
  id: z.uuid(),
  /** Epoch ms at the producer. */
  at: z.number().int(),
  /** Reporter: `edge`, `functions`, or the agent's name. */
  producer: z.string(),
};
export const request = { tenant: z.string(), request: z.string() };
export const caller = { subject: z.string().optional(), action: z.string(), class: z.string().optional() };
