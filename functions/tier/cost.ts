// Expected cost of a blob in a tier, and the fees of a move.
import type { BlobTier, RehydratePriority } from '../../shared/registry/tiers.ts';
import type { Prices } from './prices.ts';

const DAYS_A_MONTH = 30;

/** Fees of a move, in dollars. */
export interface Fees {
  /** Rest of the minimum stay, charged pro rata. */
  readonly early: number;
  readonly read: number;
  readonly write: number;
  readonly total: number;
}

interface Placed {
  readonly gb: number;
  readonly tier: BlobTier;
  /** Days in the tier. */
  readonly days: number;
}

export function feesOf(prices: Prices, { gb, tier, days }: Placed, to: BlobTier, priority: RehydratePriority): Fees {
  const { gbMonth, minimumDays } = prices.tiers[tier];
  const early = (gb * gbMonth * Math.max(0, minimumDays - days)) / DAYS_A_MONTH;
  const read = readCost(prices, gb, tier, priority);
  const { write } = prices.tiers[to];
  return { early, read, write, total: early + read + write };
}

export const monthly = (prices: Prices, gb: number, tier: BlobTier): number => gb * prices.tiers[tier].gbMonth;

/** Returns the dollars of one read, from archive those of a return. */
function readCost({ tiers, rehydrate }: Prices, gb: number, tier: BlobTier, priority: RehydratePriority): number {
  if (tier === 'archive') return rehydrate[priority].operation + gb * rehydrate[priority].gb;
  return tiers[tier].read + gb * tiers[tier].readGb;
}

/** Returns the dollars of storage and expected reads over a horizon; a stay below the minimum is paid in full. */
export function costOf(
  prices: Prices,
  { gb, tier }: Pick<Placed, 'gb' | 'tier'>,
  { days, reads, outage }: { readonly days: number; readonly reads: number; readonly outage: number },
): number {
  const stored = Math.max(days, prices.tiers[tier].minimumDays) / DAYS_A_MONTH;
  // A read of an archived blob pays the return and the hours without it.
  const waits = tier === 'archive' ? outage * prices.rehydrate.standard.hours : 0;
  return monthly(prices, gb, tier) * stored + reads * (readCost(prices, gb, tier, 'standard') + waits);
}
