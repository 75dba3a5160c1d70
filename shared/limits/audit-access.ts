import { type Limit, MiB } from './limit.ts';

/** Limits on reads and exports of the audit record, per tenant. */
export const auditAccessLimits = {
  auditUnendedMs: {
    value: 172_800_000,
    unit: 'ms',
    by: 'functions',
    why: 'After which an upload or document without an end is a gap: two days, twice the time in which one that no agent takes is given up.',
  },
  auditGapsListed: {
    value: 1_000,
    unit: 'count',
    by: 'functions',
    why: 'Gaps that one answer lists and health counts, oldest first: each waits for a person, who accepts no more in a day.',
  },
  auditReceiptsAtOnce: {
    value: 16,
    unit: 'count',
    by: 'functions',
    why: 'Receipts, and lists of logs, that one process makes at a time: each is a dozen reads of storage beside the writing of the logs.',
  },
  auditReceiptsPerTenant: {
    value: 4,
    unit: 'count',
    by: 'functions',
    why: 'Of one tenant in a zone: a quarter of auditReceiptsAtOnce, so that one that asks without end leaves room for three others.',
  },
  auditFilesAtOnce: {
    value: 64,
    unit: 'count',
    by: 'functions',
    why: 'Files of logs that one process reads at a time for who asks: each is one read of storage, of some KiB.',
  },
  auditFilesPerTenant: {
    value: 16,
    unit: 'count',
    by: 'functions',
    why: 'Of one tenant in a zone: a quarter of auditFilesAtOnce, and as many as clients that read whole logs fetch side by side.',
  },
  auditReadsPerTenant: {
    value: 32,
    unit: 'count',
    by: 'functions',
    why: 'Entries of the log in auditReadsMs about first reads of one tenant: names are free for who mints tokens. What comes beyond is one entry for all of them.',
  },
  auditExportsPerDay: {
    value: 48,
    unit: 'count',
    by: 'functions',
    why: 'Exports of a tenant in a zone in 24 hours, beside the few that come at once with the last: one every half hour, where an auditor makes one a quarter. Each reads the log and lies there for a week.',
  },
  auditExportKeptBytes: {
    value: 256 * 1_024 * MiB,
    unit: 'byte',
    by: 'functions',
    why: 'Exports of a tenant in a zone that lie there at a time; nothing more is begun beyond. A year of a hundred million entries is some tens of GiB with all that is derived of it.',
  },
} as const satisfies Record<string, Limit>;
