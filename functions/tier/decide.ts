// Decides the storage tier of each blob of a revision. Pure: blobs, prices and a time in, moves with reasons out.
import { type BlobTier, blobTiers, type Need, type RehydratePriority } from '../../shared/registry/tiers.ts';
import { costOf, type Fees, feesOf, monthly } from './cost.ts';
import { azureEastUs, type Prices } from './prices.ts';

/** Coldest tier that a need allows. A legal hold is read by people, who may wait, but not for a return from archive. */
export const coldest: Readonly<Record<Need, BlobTier>> = { alias: 'hot', trial: 'hot', rollback: 'cool', hold: 'cold' };

export interface StoredBlob {
  readonly digest: string;
  readonly bytes: number;
  readonly tier: BlobTier;
  /** Epoch ms of its arrival in the tier. */
  readonly since: number;
  readonly lastRead: number;
  /** Reads in the last 30 days. */
  readonly reads: number;
  /** Needs of all revisions that contain it. */
  readonly needs: readonly Need[];
  /** An archived blob was requested since it is in archive. */
  readonly wanted?: boolean;
  /** A move in progress; a return from archive says its priority. */
  readonly moving?: { readonly to: BlobTier; readonly priority?: RehydratePriority };
}

export interface BlobMove {
  readonly digest: string;
  readonly from: BlobTier;
  readonly to: BlobTier;
  /** `needed`: a floor or a request asks for it. `cheaper`: it saves more than it costs. `hurry`: only the priority rises. */
  readonly rule: 'needed' | 'cheaper' | 'hurry';
  /** Set for a return from archive. */
  readonly priority?: RehydratePriority;
  /** Epoch ms to plan with; a return may take less. */
  readonly expectedAt: number;
  readonly fees: Fees;
  /** Dollars a month that the move saves in storage; negative when it costs more. */
  readonly savesMonthly: number;
  readonly reasons: Reasons;
}

/** Every number of a decision about a blob. */
export interface Reasons {
  readonly floor: BlobTier;
  readonly idleDays: number;
  readonly horizonDays: number;
  readonly expectedReads: number;
  /** Dollars over the horizon in each tier, fees of getting there included. */
  readonly costs: Readonly<Record<BlobTier, number>>;
}

export interface BlobPolicy {
  readonly prices: Prices;
  /** Dollars that an hour without a wanted blob costs. */
  readonly outagePerHour: number;
  /** A move must save this share of the present cost: prices and forecasts are not exact. */
  readonly margin: number;
  /** Smallest worthwhile saving over the horizon, in dollars; a request has a price as well. */
  readonly leastSaving: number;
}

export const blobPolicy: BlobPolicy = {
  prices: azureEastUs,
  // A revision without a need serves no request; a cent and a half for the 15 hours of a return keeps small files online.
  outagePerHour: 0.001,
  margin: 0.1,
  leastSaving: 0.001,
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Idle days before archive is considered: a blob idle for less is expected to leave before the minimum stay is over. */
const ARCHIVE_IDLE_DAYS = 180;
const READ_WINDOW_DAYS = 30;

export function decideBlobs(blobs: readonly StoredBlob[], policy: BlobPolicy, now: number): BlobMove[] {
  let highGb = 0;
  for (const { moving, bytes, tier } of blobs)
    if (tier === 'archive' && moving?.priority === 'high') highGb += gbOf(bytes);
  const moves: BlobMove[] = [];
  for (const blob of blobs) {
    const move = decideBlob(blob, policy, now, highGb);
    if (!move) continue;
    moves.push(move);
    if (move.priority === 'high') highGb += gbOf(blob.bytes);
  }
  return moves;
}

/** Decides one blob; `highGb` returns with high priority before it. */
export function decideBlob(blob: StoredBlob, policy: BlobPolicy, now: number, highGb = 0): BlobMove | undefined {
  const reasons = weighBlob(blob, policy, now);
  const below = rank(blob.tier) > rank(reasons.floor);
  if (blob.moving) return blob.wanted || below ? hurry(blob, policy, now, { reasons, highGb }) : undefined;
  const cheapest = (start: BlobTier) =>
    blobTiers
      .filter((tier) => rank(tier) <= rank(reasons.floor) && isAllowed(tier, blob, reasons))
      .reduce((best, tier) => (reasons.costs[tier] < reasons.costs[best] ? tier : best), start);
  if (below) return moveTo(blob, policy, now, { to: cheapest(reasons.floor), rule: 'needed', reasons, highGb });
  // A wanted blob comes back to where reading is free.
  if (blob.wanted) return moveTo(blob, policy, now, { to: 'hot', rule: 'needed', reasons, highGb });
  const to = cheapest(blob.tier);
  const saving = reasons.costs[blob.tier] - reasons.costs[to];
  if (saving <= Math.max(policy.leastSaving, policy.margin * reasons.costs[blob.tier])) return undefined;
  return moveTo(blob, policy, now, { to, rule: 'cheaper', reasons, highGb });
}

const rank = (tier: BlobTier): number => blobTiers.indexOf(tier);
const gbOf = (bytes: number): number => bytes / 1e9;

/** Archive takes what was idle for long; nothing leaves it because another tier looks cheaper. */
function isAllowed(to: BlobTier, { tier }: StoredBlob, { floor, idleDays }: Reasons): boolean {
  if (tier === 'archive') return floor !== 'archive' || to === 'archive';
  return to !== 'archive' || idleDays > ARCHIVE_IDLE_DAYS;
}

/** Returns every number that a decision about a blob rests on. */
export function weighBlob(blob: StoredBlob, { prices, outagePerHour }: BlobPolicy, now: number): Reasons {
  const gb = gbOf(blob.bytes);
  const days = Math.max(0, now - blob.since) / DAY_MS;
  const idleDays = Math.max(0, now - blob.lastRead) / DAY_MS;
  // A blob idle for long stays idle for as long again: one read is expected in that time, and more if it was read lately.
  const horizonDays = Math.max(READ_WINDOW_DAYS, idleDays);
  const expectedReads = Math.max(1, (blob.reads * horizonDays) / READ_WINDOW_DAYS);
  const costs = Object.fromEntries(
    blobTiers.map((tier) => {
      const use = { days: horizonDays, reads: expectedReads, outage: outagePerHour };
      const move = tier === blob.tier ? 0 : feesOf(prices, { gb, tier: blob.tier, days }, tier, 'standard').total;
      return [tier, move + costOf(prices, { gb, tier }, use)];
    }),
  ) as Record<BlobTier, number>;
  return { floor: floorOf(blob.needs), idleDays, horizonDays, expectedReads, costs };
}

export const floorOf = (needs: readonly Need[]): BlobTier =>
  blobTiers[Math.min(...needs.map((need) => rank(coldest[need])), rank('archive'))] ?? 'hot';

interface Chosen {
  readonly to: BlobTier;
  readonly rule: BlobMove['rule'];
  readonly reasons: Reasons;
  readonly highGb: number;
}

function moveTo(
  blob: StoredBlob,
  { prices }: BlobPolicy,
  now: number,
  { to, rule, reasons, highGb }: Chosen,
): BlobMove {
  const gb = gbOf(blob.bytes);
  const priority = blob.tier === 'archive' ? priorityOf(blob) : undefined;
  const hours = priority === undefined ? 0 : prices.rehydrate[priority].hours;
  const queued = priority === 'high' ? (highGb + gb) / prices.highGbPerHour : 0;
  const days = Math.max(0, now - blob.since) / DAY_MS;
  return {
    digest: blob.digest,
    from: blob.tier,
    to,
    rule,
    ...(priority && { priority }),
    expectedAt: now + Math.max(hours, queued) * HOUR_MS,
    fees: feesOf(prices, { gb, tier: blob.tier, days }, to, priority ?? 'standard'),
    savesMonthly: monthly(prices, gb, blob.tier) - monthly(prices, gb, to),
    reasons,
  };
}

/** High priority is for what is served now or was requested. */
const priorityOf = ({ needs, wanted }: StoredBlob): RehydratePriority =>
  wanted || needs.includes('alias') || needs.includes('trial') ? 'high' : 'standard';

/** A return in progress keeps its target; its priority may be raised while it waits, never lowered. */
function hurry(
  blob: StoredBlob,
  policy: BlobPolicy,
  now: number,
  weighed: { readonly reasons: Reasons; readonly highGb: number },
): BlobMove | undefined {
  const { moving, tier } = blob;
  if (tier !== 'archive' || moving?.priority !== 'standard') return undefined;
  if (priorityOf(blob) === 'standard') return undefined;
  return moveTo(blob, policy, now, { to: moving.to, rule: 'hurry', ...weighed });
}
