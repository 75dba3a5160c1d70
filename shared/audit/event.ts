import { z } from 'zod';
import { complianceEvents } from './compliance-event.ts';
import { caller, origin, request } from './event-parts.ts';
import { producerEvents } from './producer-event.ts';

/** Events of the audit log. `plain-members.ts` lists the members in the clear. */
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
    /** HTTP status of the answer; 499 for a client that went away, 0 when unknown. */
    status: z.number().int(),
    /**
     * Absent when the request was served; `lost` when its worker vanished: a later end of the same request
     * takes precedence.
     */
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
  /** The edge made a short-lived token for a device. */
  z.object({
    ...origin,
    ...request,
    type: z.literal('token.granted'),
    subject: z.string().optional(),
    /** Subject of the token, when it differs from the caller's. */
    grantee: z.string().optional(),
    action: z.string(),
    scope: z.string(),
    /** Epoch seconds. */
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
  /** A live stream lost its agent and moved to another, or failed. */
  z.object({
    ...origin,
    ...request,
    type: z.literal('stream.roll'),
    from: z.string(),
    to: z.string().optional(),
    /** Start of the replay on the other agent, seconds of the stream's own time. */
    time: z.number(),
    reason: z.string(),
  }),
  z.object({
    ...origin,
    tenant: z.string().optional(),
    type: z.literal('keys'),
    agent: z.string(),
    /** `replaced`: the Roster lists another process under the name of the previous one. */
    action: z.enum(['attested', 'refused', 'replaced', 'setup', 'gone']),
    suite: z.number().int().optional(),
    attestation: z.string().optional(),
    detail: z.string().optional(),
  }),
  z.object({
    ...origin,
    type: z.literal('model.revision'),
    agent: z.string(),
    action: z.enum(['loaded', 'unloaded', 'refused']),
    model: z.string(),
    revision: z.string(),
  }),
  /** The level of an agent changed (A20): 0 full quality, 1 features off, 2 8 kHz sound, 3 cached results. */
  z.object({
    ...origin,
    type: z.literal('pool.degrade'),
    agent: z.string(),
    from: z.number().int().min(0).max(3),
    to: z.number().int().min(0).max(3),
  }),
  ...producerEvents,
  ...complianceEvents,
]);

export type AuditEvent = z.infer<typeof auditEvent>;

type Origin = 'v' | 'id' | 'at' | 'producer';
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

/** An event before id, time and producer are set. */
export type EventDraft = Without<AuditEvent, Origin>;
