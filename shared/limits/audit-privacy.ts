import type { Limit } from './limit.ts';

/** Limits on private fields of leaves: keys, erasure, index. */
export const auditPrivacyLimits = {
  auditKeysHeld: {
    value: 4_096,
    unit: 'count',
    by: 'functions',
    why: 'Keys of the sidecar that one process holds in memory, about 1 KiB each; beyond it the oldest is asked for again.',
  },
  auditKeySeconds: {
    value: 300,
    unit: 's',
    by: 'functions',
    why: 'How long a key that was destroyed elsewhere may still be in the memory of a process.',
  },
  auditSidecarReach: {
    value: 32_000,
    unit: 'count',
    by: 'functions',
    why: 'Entries before one among which the beginning of its commit is looked for: a commit has at most auditEntriesPerCommit and one delivery.',
  },
  auditSidecarFiles: {
    value: 2_000,
    unit: 'count',
    by: 'functions',
    why: 'Files of what leaves hide that begin within a thousand entries: one for each commit, and a few of commits that never were.',
  },
  auditHolds: {
    value: 256,
    unit: 'count',
    by: 'functions',
    why: 'Holds of one tenant in a zone at a time; each is of a case that somebody has on a desk.',
  },
  auditHoldsListed: {
    value: 65_536,
    unit: 'count',
    by: 'functions',
    why: 'Holds of all tenants of a zone that one round looks at: auditHolds of 256 tenants.',
  },
  auditHoldCharacters: {
    value: 1_024,
    unit: 'character',
    by: 'functions',
    why: 'Why something is held, or no more, or erased, in words.',
  },
  auditErasures: {
    value: 4_096,
    unit: 'count',
    by: 'functions',
    why: 'Erasures of one tenant in a zone that wait for a hold or a law. A law may make them wait for years, so one tenant must not take the places of others.',
  },
  auditErasuresListed: {
    value: 65_536,
    unit: 'count',
    by: 'functions',
    why: 'Names of waiting erasures of a zone that one round lists: 14 calls of storage.',
  },
  auditErasuresPerRound: {
    value: 4_096,
    unit: 'count',
    by: 'functions',
    why: 'Waiting erasures that one round reads and looks at, the next ones in the next round: a minute of reading.',
  },
  auditPeriodsPerRound: {
    value: 64,
    unit: 'count',
    by: 'functions',
    why: 'Months of a tenant and class that one round of retention ends: a write and a removal each.',
  },
  auditPeriodsListed: {
    value: 16_384,
    unit: 'count',
    by: 'functions',
    why: 'Tenants that one round looks at for each class and month that is over: more than a log has room for.',
  },
  auditIndexBundles: {
    value: 8,
    unit: 'count',
    by: 'functions',
    why: 'Bundles of 256 entries that one round adds to the index: a few seconds of writing.',
  },
  auditIndexAtOnce: {
    value: 16,
    unit: 'count',
    by: 'functions',
    why: 'Transactions of the index under way at a time; each is of another partition.',
  },
  auditIndexCounted: {
    value: 50_000,
    unit: 'count',
    by: 'functions',
    why: 'Records of a subject that are counted before they are erased: what is beyond it is erased as well, and not counted.',
  },
  auditSearchHits: {
    value: 50,
    unit: 'count',
    by: 'functions',
    why: 'Hits of one page of a search, each with its proof: about 150 KiB.',
  },
  auditSearchLooked: {
    value: 200,
    unit: 'count',
    by: 'functions',
    why: 'Entries that one search looks at for the hits of its page: four pages, so that what fits few of them is found in few answers.',
  },
  auditSearchYears: {
    value: 8,
    unit: 'count',
    by: 'functions',
    why: 'Years of logs that an index is built of: one more than anything is kept.',
  },
} as const satisfies Record<string, Limit>;
