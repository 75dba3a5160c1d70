// Tiers of object storage that the functions keep the files of revisions in (functions/tier), below `/api`:
//
//  GET /models/{model}/tiers   → modelTiers: where each revision is, and why
//  GET /tiers                  → storeTiers: what each tier holds and costs
import { z } from 'zod';
import { revisionDigest } from './revision.ts';
import { canaryShare, stage } from './stage.ts';

/** Hottest first. */
export const blobTier = z.enum(['hot', 'cool', 'cold', 'archive']);
export type BlobTier = z.infer<typeof blobTier>;
export const blobTiers: readonly BlobTier[] = blobTier.options;

/** Priority of a return from archive. */
export const rehydratePriority = z.enum(['standard', 'high']);
export type RehydratePriority = z.infer<typeof rehydratePriority>;

/** Reasons that keep a file near. */
export const need = z.enum(['alias', 'rollback', 'trial', 'hold']);
export type Need = z.infer<typeof need>;

/** Reason of a move: a floor or a request asks for it, it saves more than it costs, or only its priority rises. */
export const moveRule = z.enum(['needed', 'cheaper', 'hurry']);

const count = z.number().int().nonnegative();
const dollars = z.number();

/** Files of a revision with the same tier and decision. */
export const tierPart = z.object({
  tier: blobTier,
  files: count,
  bytes: count,
  days: z.number().describe('Days in the tier, of the file that came last'),
  minimumDays: z.number().describe('Stay that the tier charges at least'),
  gbMonth: dollars.describe('Price of a GB for a month'),
  monthly: dollars.describe('Dollars a month for these files'),
  returning: z
    .object({ to: blobTier, priority: rehydratePriority, expected: z.number().int().optional() })
    .optional()
    .describe('Return from archive in progress'),
  floor: blobTier.describe('Coldest tier that the needs of the files allow'),
  idleDays: z.number(),
  horizonDays: z.number().describe('Days that the costs are compared over'),
  expectedReads: z.number().describe('Reads of each file that are expected in that time'),
  costs: z
    .record(blobTier, dollars)
    .describe('Dollars over that time in each tier, with the fees of the move and the hours of a return'),
  move: z
    .object({
      to: blobTier,
      rule: moveRule,
      fees: z.object({ early: dollars, read: dollars, write: dollars, total: dollars }),
      savesMonthly: dollars,
    })
    .optional()
    .describe('Decided move; absent: the files stay'),
});
export type TierPart = z.infer<typeof tierPart>;

export const revisionTiers = z.object({
  revision: revisionDigest,
  stage,
  share: canaryShare.optional(),
  aliases: z.array(z.string()),
  needs: z.array(need),
  used: z.number().int().describe('Last use, ms since 1970'),
  uses: count.describe('Requests of agents for the files in 30 days'),
  complete: z.boolean().describe('The store has every file'),
  parts: z.array(tierPart),
});
export type RevisionTiers = z.infer<typeof revisionTiers>;

export const modelTiers = z.object({
  model: z.string(),
  prices: z.string().describe('Region and redundancy of the prices'),
  revisions: z.array(revisionTiers),
});
export type ModelTiers = z.infer<typeof modelTiers>;

export const storeTiers = z.object({
  prices: z.string().describe('Region and redundancy of the prices'),
  tiers: z.array(
    z.object({
      tier: blobTier,
      revisions: count.describe('Revisions with a file in the tier'),
      files: count,
      bytes: count.describe('Bytes of files, each counted once'),
      monthly: dollars.describe('Dollars a month'),
    }),
  ),
});
export type StoreTiers = z.infer<typeof storeTiers>;
