// Tiers of revisions and of the store with the decisions, as operators see them. Pure.
import {
  type BlobTier,
  blobTiers,
  type RevisionTiers,
  type StoreTiers,
  type TierPart,
} from '../../shared/registry/tiers.ts';
import { monthly } from './cost.ts';
import { type BlobMove, type BlobPolicy, decideBlob, type StoredBlob, weighBlob } from './decide.ts';
import type { RevisionFiles, TierFacts } from './facts.ts';

const DAY_MS = 86_400_000;
const GB = 1e9;

interface Decided {
  readonly blob: StoredBlob;
  readonly move: BlobMove | undefined;
}

/** Returns a revision with the decision of `decideBlob` for its files, those with the same one together. */
export function explainRevision(
  { revision, stage, share, aliases, needs, used, uses, files }: RevisionFiles,
  { blobs }: TierFacts,
  policy: BlobPolicy,
  { now, returns }: { readonly now: number; readonly returns: Readonly<Record<string, number>> },
): RevisionTiers {
  const digests = [...new Set(files.map(({ digest }) => digest))];
  const groups = new Map<string, Decided[]>();
  for (const digest of digests) {
    const blob = blobs.get(digest);
    if (!blob) continue;
    const move = decideBlob(blob, policy, now);
    const { floor } = weighBlob(blob, policy, now);
    const key = [blob.tier, floor, blob.moving?.to, blob.moving?.priority, move?.to, move?.rule].join();
    groups.set(key, [...(groups.get(key) ?? []), { blob, move }]);
  }
  return {
    ...{ revision, stage, ...(share !== undefined && { share }), aliases: [...aliases], needs: [...needs], used, uses },
    complete: digests.every((digest) => blobs.has(digest)),
    parts: [...groups.values()].map((group) => partOf(group, policy, now, returns)),
  };
}

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);

/** Sums files with the same tier and decision. Ages are those of the file that came or was used last. */
function partOf(
  group: readonly Decided[],
  policy: BlobPolicy,
  now: number,
  returns: Readonly<Record<string, number>>,
): TierPart {
  const [{ blob, move }] = group as readonly [Decided];
  const weighed = group.map((one) => weighBlob(one.blob, policy, now));
  const [{ floor }] = weighed as [(typeof weighed)[0]];
  const moves = group.flatMap((one) => one.move ?? []);
  const { gbMonth, minimumDays } = policy.prices.tiers[blob.tier];
  const expected = Math.max(...group.map((one) => returns[one.blob.digest] ?? 0));
  const fee = (name: 'early' | 'read' | 'write' | 'total') => sum(moves, ({ fees }) => fees[name]);
  return {
    tier: blob.tier,
    files: group.length,
    bytes: sum(group, (one) => one.blob.bytes),
    days: Math.min(...group.map((one) => Math.max(0, now - one.blob.since) / DAY_MS)),
    ...{ minimumDays, gbMonth, floor },
    monthly: sum(group, (one) => monthly(policy.prices, one.blob.bytes / GB, one.blob.tier)),
    ...(blob.moving?.priority && {
      returning: { to: blob.moving.to, priority: blob.moving.priority, ...(expected > 0 && { expected }) },
    }),
    idleDays: Math.min(...weighed.map((one) => one.idleDays)),
    horizonDays: Math.min(...weighed.map((one) => one.horizonDays)),
    expectedReads: Math.max(...weighed.map((one) => one.expectedReads)),
    costs: Object.fromEntries(blobTiers.map((tier) => [tier, sum(weighed, ({ costs }) => costs[tier])])) as Record<
      BlobTier,
      number
    >,
    ...(move && {
      move: {
        ...{ to: move.to, rule: move.rule },
        fees: { early: fee('early'), read: fee('read'), write: fee('write'), total: fee('total') },
        savesMonthly: sum(moves, (one) => one.savesMonthly),
      },
    }),
  };
}

/** Returns what each tier holds and costs. */
export function summarise({ revisions, blobs }: TierFacts, { prices }: BlobPolicy): StoreTiers {
  const tiers = blobTiers.map((tier) => {
    const here = [...blobs.values()].filter((blob) => blob.tier === tier);
    const digests = new Set(here.map(({ digest }) => digest));
    const bytes = sum(here, (blob) => blob.bytes);
    const holding = revisions.filter(({ files }) => files.some(({ digest }) => digests.has(digest)));
    return { tier, revisions: holding.length, files: here.length, bytes, monthly: monthly(prices, bytes / GB, tier) };
  });
  return { prices: prices.name, tiers };
}
