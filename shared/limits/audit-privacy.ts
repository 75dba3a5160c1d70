import type { Limit } from './limit.ts';

/** What leaves hide: its keys, its erasing, and the index that finds it. */
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
} as const satisfies Record<string, Limit>;
