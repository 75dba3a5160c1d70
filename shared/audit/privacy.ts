// Requests of the edge to the functions about hidden values: erasure, holds and search.
//
//   POST /api/audit/{zone}/erasures             newErasure   → 200 erasure
//   GET  /api/audit/{zone}/erasures                          → 200 erasures that wait
//   POST /api/audit/{zone}/holds                newHold      → 200 hold
//   GET  /api/audit/{zone}/holds                             → 200 holds
//   POST /api/audit/{zone}/holds/{id}/release   newRelease   → 200 released, 404 hold_unknown
//   POST /api/audit/{zone}/search               newSearch    → 200 foundEntries (search.ts)
//
// All of them concern the tenant of the token. Subjects come as commitments: only the edge learns their identity.
import { z } from 'zod';
import { logYear } from './logged-years.ts';
import { plainText } from './plain-text.ts';

/** Reason of a hold, its release, an erasure or an accepted gap: a few sentences. */
export const AUDIT_REASON_CHARACTERS = 1_024;
/** Hits of one page of a search, each with its proof: about 150 KiB. */
export const SEARCH_HITS_MAX = 50;

/** Commitment to a subject, made by a Gate. */
export const commitment = z.string().regex(/^c1:[0-9a-f]{64}$/);
const commitments = z.array(commitment).min(1).max(4);
/** Public short name of a rule or a case: it appears in the log. */
const basisName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 ().:/_-]{0,63}$/);
/** Basis of an erasure: a rule, a contract or a decision. */
export const erasureBases = ['gdpr-17', 'ccpa-1798.105', 'pipl-47', 'contract', 'court-order'] as const;
export const erasureBasis = z.enum(erasureBases).or(z.string().regex(/^other:[A-Za-z0-9][A-Za-z0-9 ().:/_-]{0,57}$/));
const reason = plainText(AUDIT_REASON_CHARACTERS);
const officer = { by: commitment.optional(), request: z.string().max(128).optional() };

export const newErasure = z.strictObject({ subjects: commitments, basis: erasureBasis, ...officer });
export const newHold = z.strictObject({
  id: z.uuid(),
  subjects: commitments.optional(),
  reason,
  basis: basisName.optional(),
  ...officer,
});
export const newRelease = z.strictObject({ reason, ...officer });
export const newSearch = z.strictObject({
  request: z.string().max(128).optional(),
  model: z.string().max(256).optional(),
  type: z.string().max(64).optional(),
  day: z
    .string()
    .regex(/^\d{8}$/)
    .optional(),
  subjects: commitments.optional(),
  /** Positions in the log of a year, in place of a search; they reach entries beyond the index. */
  year: logYear.optional(),
  indexes: z.array(z.number().int().min(0)).min(1).max(SEARCH_HITS_MAX).optional(),
  disclose: z.boolean().optional(),
  after: z.string().max(64).optional(),
  limit: z.number().int().min(1).optional(),
});

const time = z.number().int().describe('Milliseconds since 1970');

export const erasure = z.object({
  outcome: z.enum(['done', 'deferred', 'nothing']),
  basis: z.string().describe('Legal basis; if deferred, the cause: `hold` or a retention class'),
  asked: z.string().optional().describe('Basis of the first request; a repeated request does not change it'),
  until: time.optional().describe('Due time, in milliseconds since 1970; absent during a hold'),
  erased: z.array(z.string()).describe('Commitments of the subject in `erasure.exec`'),
  count: z.number().int().describe('Records found in the index'),
});

export const waitingErasures = z.object({
  data: z.array(
    z.object({
      subject: z.string().describe('The commitment'),
      basis: z.string(),
      at: time,
      deferred: z.object({ basis: z.string(), until: time.optional() }).optional(),
    }),
  ),
});

export const hold = z.object({
  id: z.string(),
  scope: z.enum(['tenant', 'subject']),
  subject: z.string().optional().describe('The commitment'),
  reason: z.string(),
  basis: z.string().optional(),
  at: time,
});
export const holds = z.object({ data: z.array(hold) });
export const released = z.object({ id: z.string() });
