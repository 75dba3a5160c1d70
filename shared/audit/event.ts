import { z } from 'zod';

/**
 * What happened, for the audit log. Content-free by construction: there is no field that could hold audio, a
 * transcript or a token. `subject` is a commitment by the time it is written: `c1:` and, in hex, the HMAC-SHA-256 of
 * who held the token, under a random salt of its tenant that stays in the tenant's gate.
 */
const origin = {
  v: z.literal(1),
  /** Time-ordered unique id (UUID version 7, RFC 9562). */
  id: z.uuid(),
  /** Milliseconds since 1970 at the producer. */
  at: z.number().int(),
  /** Who reports: `edge`, or the agent's name. */
  producer: z.string(),
};
const request = { tenant: z.string(), request: z.string() };
const caller = { subject: z.string().optional(), action: z.string(), class: z.string().optional() };

export const auditEvent = z.discriminatedUnion('type', [
  z.object({
    ...origin,
    ...request,
    ...caller,
    type: z.literal('inference.attempt'),
    model: z.string().optional(),
    language: z.string().optional(),
  }),
  z.object({
    ...origin,
    ...request,
    ...caller,
    type: z.literal('inference.complete'),
    /** What the caller was told, as in HTTP; 499 when it went away, 0 when nobody knows. */
    status: z.number().int(),
    /** Absent when it was served; `lost` when whoever worked on it vanished: a later end of the same request is truer. */
    reason: z.string().optional(),
    model: z.string().optional(),
    language: z.string().optional(),
    revision: z.string().optional(),
    agent: z.string().optional(),
    audioSeconds: z.number().optional(),
    bytes: z.number().int().optional(),
    milliseconds: z.number().optional(),
  }),
  z.object({
    ...origin,
    tenant: z.string().optional(),
    request: z.string(),
    ...caller,
    type: z.literal('inference.denied'),
    reason: z.string(),
    detail: z.string().optional(),
    suppressed: z.number().int().optional(),
  }),
  /** The edge made a token for somebody else's device. */
  z.object({
    ...origin,
    ...request,
    type: z.literal('token.granted'),
    subject: z.string().optional(),
    action: z.string(),
    scope: z.string(),
    /** Seconds since 1970. */
    expires: z.number().int(),
  }),
  z.object({
    ...origin,
    ...request,
    type: z.literal('route'),
    attempt: z.number().int(),
    pool: z.string(),
    agent: z.string(),
    zone: z.string(),
    why: z.string(),
    outcome: z.string().optional(),
  }),
  /** A live stream lost its agent, and went on at another one or nowhere. */
  z.object({
    ...origin,
    ...request,
    type: z.literal('stream.roll'),
    from: z.string(),
    to: z.string().optional(),
    /** Seconds of the stream's own time from which on the other agent heard it again. */
    time: z.number(),
    reason: z.string(),
  }),
  z.object({
    ...origin,
    tenant: z.string().optional(),
    type: z.literal('keys'),
    agent: z.string(),
    action: z.enum(['attested', 'refused', 'setup', 'gone']),
    suite: z.number().int().optional(),
    attestation: z.string().optional(),
    detail: z.string().optional(),
  }),
  z.object({
    ...origin,
    type: z.literal('model.revision'),
    agent: z.string(),
    action: z.enum(['loaded', 'unloaded']),
    model: z.string(),
    revision: z.string(),
  }),
  z.object({ ...origin, type: z.literal('gap'), lost: z.number().int(), from: z.number().int(), to: z.number().int() }),
]);

export type AuditEvent = z.infer<typeof auditEvent>;
