// What was done with the record itself, and with what it is about: exports, reads, erasure, holds, rules, models.
import { z } from 'zod';
import { origin } from './event-parts.ts';

/** Who asked, as in `event-parts.ts`, and the request with which it did, if there was one. */
const asked = { request: z.string().optional(), subject: z.string().optional() };

export const complianceEvents = [
  /** An export was asked for: the last of the tenant's leaves that it holds is this one. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('export.create'),
    tenant: z.string(),
    /** Its id. */
    export: z.string(),
    format: z.string(),
    /** Which profile says what is disclosed. */
    redaction: z.string(),
    /** What for, in the words of whoever asked. */
    purpose: z.string().optional(),
    /** Times and numbers that were asked for, as JSON: a bundle has to be of these. */
    range: z.string().optional(),
    /** First `tseq` that it holds. */
    from: z.number().int().optional(),
  }),
  /** Something of an export was fetched. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('export.read'),
    tenant: z.string(),
    export: z.string(),
    action: z.string(),
    count: z.number().int().optional(),
    bytes: z.number().int().optional(),
  }),
  /** Somebody read the record: many reads of one kind are one event, `count` of them between `since` and `at`. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('access.audit'),
    /** Whose token it was, which is not always whose entries. */
    tenant: z.string(),
    action: z.string(),
    zone: z.string().optional(),
    count: z.number().int(),
    since: z.number().int(),
    /** What was looked for, in a search. */
    query: z.string().optional(),
  }),
  /** What leaves hide was made unreadable for good, or will be: `until` says when, while something forbids it. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('erasure.exec'),
    tenant: z.string(),
    outcome: z.enum(['done', 'deferred', 'nothing']),
    /** Of whom: a digest under a salt that was destroyed with the rest. */
    erased: z.string().optional(),
    count: z.number().int().optional(),
    /** What asks for it, by its short name. */
    basis: z.string().optional(),
    /** What forbids it for now: `hold`, or a class of retention. */
    waits: z.string().optional(),
    /** Milliseconds since 1970. */
    until: z.number().int().optional(),
  }),
  ...(['hold.set', 'hold.release'] as const).map((type) =>
    z.object({
      ...origin,
      ...asked,
      type: z.literal(type),
      tenant: z.string().optional(),
      /** Its id. */
      hold: z.string(),
      /** How much of the record it is about. */
      scope: z.enum(['tenant', 'subject', 'zone']),
      zone: z.string().optional(),
      /** Whom it is about, where that is one subject: as `erased`, a name for each of its commitments of which there are records. */
      held: z.string().optional(),
      basis: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
  /** An operator accepts that events are missing, or that work has no end. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('gap.accept'),
    tenant: z.string().optional(),
    /** Year and index of the entry that shows the gap. */
    gap: z.string(),
    /** Producer, its life, and the numbers that are missing. */
    outbox: z.string(),
    epoch: z.string(),
    from: z.number().int(),
    to: z.number().int().optional(),
    reason: z.string(),
  }),
  /** A rule that was in force has changed: digests of it before and after. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('policy.change'),
    tenant: z.string().optional(),
    /** Which rule. */
    policy: z.string(),
    zone: z.string().optional(),
    before: z.string().optional(),
    after: z.string(),
  }),
  /** A revision went from one stage to another, or did not. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('model.stage'),
    tenant: z.string().optional(),
    model: z.string(),
    revision: z.string(),
    from: z.string().optional(),
    to: z.string(),
    gate: z.string().optional(),
    verdict: z.enum(['PASS', 'FAIL', 'INCONCLUSIVE']).optional(),
    alias: z.string().optional(),
    /** Digest of what the verdict rests on. */
    evidence: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** Files of an upload or a document were deleted, before or when their time had come. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('content.erased'),
    tenant: z.string(),
    /** The upload, document or project. */
    request: z.string(),
    /** What went: sound that came in, what was made of it, or all there was. */
    what: z.enum(['audio', 'outcome', 'all']),
    why: z.enum(['ended', 'expired', 'owner']),
  }),
  /** Something that those who run the fleet did. */
  z.object({
    ...origin,
    ...asked,
    type: z.literal('operator.act'),
    tenant: z.string().optional(),
    action: z.string(),
    zone: z.string().optional(),
    count: z.number().int().optional(),
    outcome: z.string().optional(),
  }),
] as const;
