// Prices of blob tiers, as data: another region, redundancy or year is another table.
import type { BlobTier, RehydratePriority } from '../../shared/registry/tiers.ts';

/** Dollars, and the days for which leaving earlier is charged. */
export interface TierPrice {
  readonly gbMonth: number;
  readonly write: number;
  readonly read: number;
  readonly readGb: number;
  readonly minimumDays: number;
}

export interface Prices {
  readonly name: string;
  /** Page that the figures were read on, and when. */
  readonly source: string;
  readonly read: string;
  readonly tiers: Readonly<Record<BlobTier, TierPrice>>;
  /** Return from archive: the longest wait to plan with, and dollars for the operation and for each GB. */
  readonly rehydrate: Readonly<Record<RehydratePriority, { hours: number; operation: number; gb: number }>>;
  /** GB an hour that an account brings back with high priority; more than that queues. */
  readonly highGbPerHour: number;
}

export const azureEastUs: Prices = {
  name: 'Azure Blob Storage, block blobs, LRS, US East',
  source:
    'GB-months, retrieval: github.com/api-evangelist/microsoft-azure-blob-storage plans, 2026-05-05, after the ' +
    'price page; operations of cool, cold, archive: a course on AZ-104 (US East 2); high priority per GB: no page ' +
    'read; minimum stays, hours, 10 GiB an hour: learn.microsoft.com/azure/storage/blobs/archive-rehydrate-overview',
  read: '2026-11-23',
  tiers: {
    hot: { gbMonth: 0.018, write: 0.055 / 10_000, read: 0.0044 / 10_000, readGb: 0, minimumDays: 0 },
    cool: { gbMonth: 0.01, write: 0.1 / 10_000, read: 0.01 / 10_000, readGb: 0.01, minimumDays: 30 },
    cold: { gbMonth: 0.0036, write: 0.18 / 10_000, read: 0.1 / 10_000, readGb: 0.03, minimumDays: 90 },
    // Reads of archive are rehydrations.
    archive: { gbMonth: 0.00099, write: 0.1 / 10_000, read: 0, readGb: 0, minimumDays: 180 },
  },
  rehydrate: {
    standard: { hours: 15, operation: 5 / 10_000, gb: 0.022 },
    high: { hours: 1, operation: 50 / 10_000, gb: 0.13 },
  },
  highGbPerHour: 10.7,
};

const HOUR_MS = 3_600_000;
/** Wait to plan with for a return of high priority, from the request, which the next look of the timer finds. */
export const RETURN_MS = (azureEastUs.rehydrate.high.hours + 0.1) * HOUR_MS;
