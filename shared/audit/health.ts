// Health of a log in numbers: the edge queries the functions, operators query the edge.
//
//   GET /api/audit/{zone}/health → 200 logHealth
import { z } from 'zod';

export const logHealth = z.object({
  zone: z.string(),
  /** Clock of the functions, epoch ms. */
  at: z.number(),
  /** Absent before the first entry. */
  log: z
    .object({
      origin: z.string(),
      /** Entries that are committed, published, and witnessed by the policy's quorum. */
      size: z.number().int(),
      published: z.number().int(),
      witnessed: z.number().int().optional(),
      /** Keys of its policy without a signature on the published checkpoint; one key of each kind. */
      unsigned: z.array(z.string()).optional(),
      /** Time of the last entry, epoch ms. */
      last: z.number(),
      /** Outboxes that are open; holes in their numbers that may still be filled. */
      open: z.number().int(),
      late: z.number().int(),
      /** The state has no capacity for new outboxes. */
      full: z.boolean().optional(),
    })
    .optional(),
  /** Open gaps and gaps accepted by an operator (`gaps.ts`). `behind`: entries not searched for gaps yet. */
  gaps: z.object({ open: z.number().int(), accepted: z.number().int(), behind: z.number().int() }).optional(),
  /** Stores of the functions that refuse writes because they are full, by their name in `/api/health`. */
  fullStores: z.array(z.string()).optional(),
  /** Deliveries that the log has not taken: their number, up to the scan limit, and the age of the oldest. */
  intake: z.object({ waiting: z.number().int(), oldestMs: z.number() }),
  /** Reports whether the policy names witnesses. */
  witnesses: z.boolean(),
  /**
   * Reports an immutability policy on stored blobs, locked or not; storage does not say which. Absent when
   * storage reports nothing.
   */
  locked: z.boolean().optional(),
  /** Witnesses that refuse its checkpoints. */
  refusing: z.array(z.string()).optional(),
  /** Unproven claims of witnesses: the log continues, and an operator should contact them. */
  doubted: z.array(z.object({ at: z.number(), witness: z.string(), why: z.string() })).optional(),
  /**
   * The log differs from a checkpoint that it signed for a witness: writes stop until an operator intervenes.
   */
  diverged: z.object({ at: z.number(), witness: z.string(), why: z.string() }).optional(),
  development: z.boolean(),
});
export type LogHealth = z.infer<typeof logHealth>;

/** Events waiting in outboxes. */
const outboxHealth = z.object({ waiting: z.number().int(), oldestMs: z.number() });
export type OutboxHealth = z.infer<typeof outboxHealth>;

/**
 * `GET /v1/audit/health?zone=`: adds what waits at the edge, for the token's tenant or, with `operate`, the
 * zone.
 */
export const auditHealth = logHealth.extend({
  outboxes: z.object({ gate: outboxHealth, roster: outboxHealth.optional() }),
});
export type AuditHealth = z.infer<typeof auditHealth>;
