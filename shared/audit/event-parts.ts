// Members that events of several kinds have.
import { z } from 'zod';

/**
 * What every event has. Content-free by construction: there is no member that could hold audio, a transcript or a token.
 * `subject` is a commitment by the time it is written: `c1:` and, in hex, the HMAC-SHA-256 of who held the token, under a
 * random salt of its tenant that stays in the tenant's gate.
 */
export const origin = {
  v: z.literal(1),
  /** Time-ordered unique id (UUID version 7, RFC 9562). */
  id: z.uuid(),
  /** Milliseconds since 1970 at the producer. */
  at: z.number().int(),
  /** Reporter: `edge`, `functions`, or the agent's name. */
  producer: z.string(),
};
export const request = { tenant: z.string(), request: z.string() };
export const caller = { subject: z.string().optional(), action: z.string(), class: z.string().optional() };
