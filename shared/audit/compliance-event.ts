// Compliance events: exports, reads, erasures, holds, rules and models.
import { z } from 'zod';
import { origin } from './event-parts.ts';

/** The requester, as in `event-parts.ts`, and its request, if any. */
const requester = { request: z.string().optional(), subject: z.string().optional() };

export const complianceEvents = [
  /** An export was requested. This is the last of the tenant's leaves that it holds. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('export.create'),
    tenant: z.string(),
    /** Id of the export. */
    export: z.string(),
    format: z.string(),
    /** Profile of disclosure. */
    redaction: z.string(),
    /** Purpose, in the requester's words. */
    purpose: z.string().optional(),
    /** Requested times and numbers, as JSON: the bundle must match them. */
    range: z.string().optional(),
    /** First `tseq` of the export. */
    from: z.number().int().optional(),
  }),
  /** A part of an export was downloaded. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('export.read'),
    tenant: z.string(),
    export: z.string(),
    action: z.string(),
    count: z.number().int().optional(),
    bytes: z.number().int().optional(),
  }),
  /** A read of the record. Reads of one kind are aggregated: `count` of them between `since` and `at`. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('access.audit'),
    /** Tenant of the token, which may differ from that of the entries. */
    tenant: z.string(),
    action: z.string(),
    zone: z.string().optional(),
    count: z.number().int(),
    since: z.number().int(),
    /** Kind of a search. */
    query: z.string().optional(),
  }),
  /** Hidden values were destroyed, or will be: `until` is the time of a deferred erasure. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('erasure.exec'),
    tenant: z.string(),
    outcome: z.enum(['done', 'deferred', 'nothing']),
    /** Name of the subject: a digest under a salt that was destroyed as well. */
    erased: z.string().optional(),
    count: z.number().int().optional(),
    /** Basis of the erasure. */
    basis: z.string().optional(),
    /** Reason of deferral: `hold`, or a class of retention. */
    waits: z.string().optional(),
    /** Epoch ms. */
    until: z.number().int().optional(),
  }),
  ...(['hold.set', 'hold.release'] as const).map((type) =>
    z.object({
      ...origin,
      ...requester,
      type: z.literal(type),
      tenant: z.string().optional(),
      /** Id of the hold. */
      hold: z.string(),
      /** Scope of the hold. */
      scope: z.enum(['tenant', 'subject', 'zone']),
      zone: z.string().optional(),
      /** Names of the one subject held: as `erased`, one for each of its commitments with records. */
      held: z.string().optional(),
      basis: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
  /** An operator accepts missing events, or work without an end. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('gap.accept'),
    tenant: z.string().optional(),
    /** Year and index of the entry that shows the gap. */
    gap: z.string(),
    /** Producer, its epoch, and the missing numbers. */
    outbox: z.string(),
    epoch: z.string(),
    from: z.number().int(),
    to: z.number().int().optional(),
    reason: z.string(),
  }),
  /** A rule in force changed: digests of it before and after. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('policy.change'),
    tenant: z.string().optional(),
    /** Name of the rule. */
    policy: z.string(),
    zone: z.string().optional(),
    before: z.string().optional(),
    after: z.string(),
  }),
  /** A revision moved from one stage to another, or its move was refused. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('model.stage'),
    tenant: z.string().optional(),
    model: z.string(),
    revision: z.string(),
    from: z.string().optional(),
    to: z.string(),
    gate: z.string().optional(),
    verdict: z.enum(['PASS', 'FAIL', 'INCONCLUSIVE']).optional(),
    alias: z.string().optional(),
    /** Digest of the verdict's evidence. */
    evidence: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** A stored file of a revision moved to another tier, or its return from archive began. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('model.tier'),
    tenant: z.string().optional(),
    model: z.string(),
    revision: z.string(),
    /** SHA-256 of the file. */
    file: z.string(),
    from: z.string(),
    to: z.string(),
    rule: z.string(),
    priority: z.string().optional(),
  }),
  /** Files of an upload or a document were deleted, early or at the end of their retention. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('content.erased'),
    tenant: z.string(),
    /** The upload, document or project. */
    request: z.string(),
    /** Erased content: incoming audio, results, or all. */
    what: z.enum(['audio', 'outcome', 'all']),
    why: z.enum(['ended', 'expired', 'owner']),
  }),
  /** An act of the fleet's operators. */
  z.object({
    ...origin,
    ...requester,
    type: z.literal('operator.act'),
    tenant: z.string().optional(),
    action: z.string(),
    zone: z.string().optional(),
    pool: z.string().optional(),
    count: z.number().int().optional(),
    outcome: z.string().optional(),
  }),
] as const;
