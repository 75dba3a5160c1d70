// How a log is doing, in numbers: asked of the functions by the edge, and by operators of the edge.
//
//   GET /api/audit/{zone}/health → 200 logHealth
import { z } from 'zod';

export const logHealth = z.object({
  zone: z.string(),
  /** The functions' clock, ms since 1970. */
  at: z.number(),
  /** Absent before the first entry. */
  log: z
    .object({
      origin: z.string(),
      /** Entries that are committed, published, and witnessed by as many as the policy asks for. */
      size: z.number().int(),
      published: z.number().int(),
      witnessed: z.number().int().optional(),
      /** Keys of its policy that have not signed what is published: of each kind there is one. */
      unsigned: z.array(z.string()).optional(),
      /** Time of the last entry, ms since 1970. */
      last: z.number(),
      /** Outboxes that have begun and have not ended; holes in their numbers that may still be filled. */
      open: z.number().int(),
      late: z.number().int(),
      /** The state has no capacity for new outboxes. */
      full: z.boolean().optional(),
    })
    .optional(),
  /**
   * Gaps that no operator has accepted, and those that one has (`gaps.ts`). `behind`: entries that were not searched for
   * gaps yet.
   */
  gaps: z.object({ open: z.number().int(), accepted: z.number().int(), behind: z.number().int() }).optional(),
  /** Stores of the functions that refuse writes because they are full, by their name in `/api/health`. */
  fullStores: z.array(z.string()).optional(),
  /** Deliveries that the log has not taken: how many, at most as many as it looks at, and the age of the oldest. */
  intake: z.object({ waiting: z.number().int(), oldestMs: z.number() }),
  /** Reports whether the policy names witnesses. */
  witnesses: z.boolean(),
  /**
   * Whether storage has an immutability policy on what is written, locked or not: that it does not say. Absent where it says
   * nothing.
   */
  locked: z.boolean().optional(),
  /** Witnesses that refuse its checkpoints. */
  refusing: z.array(z.string()).optional(),
  /** Unproven claims of witnesses: the log continues, and an operator should ask them. */
  doubted: z.array(z.object({ at: z.number(), witness: z.string(), why: z.string() })).optional(),
  /**
   * The log differs from a checkpoint that it signed for a witness: nothing is written until an operator
   * looks.
   */
  diverged: z.object({ at: z.number(), witness: z.string(), why: z.string() }).optional(),
  development: z.boolean(),
});
export type LogHealth = z.infer<typeof logHealth>;

/** Events that wait for the log where they were made. */
const outboxHealth = z.object({ waiting: z.number().int(), oldestMs: z.number() });
export type OutboxHealth = z.infer<typeof outboxHealth>;

/** `GET /v1/audit/health?zone=`: the same with what waits at the edge, for the token's own tenant or, with `operate`, the zone. */
export const auditHealth = logHealth.extend({
  outboxes: z.object({ gate: outboxHealth, roster: outboxHealth.optional() }),
});
export type AuditHealth = z.infer<typeof auditHealth>;
