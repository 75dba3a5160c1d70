import { type Limit, MiB } from './limit.ts';

/** Verifying an export, on the machine of its reader. */
export const verifyLimits = {
  auditZipDirectoryBytes: {
    value: 64 * MiB,
    unit: 'byte',
    by: 'client',
    why: 'Directory of a zip that an export is verified from; it is held. A hundred bytes for each file: exports have some thousand.',
  },
  auditZipFileBytes: {
    value: 256 * MiB,
    unit: 'byte',
    by: 'client',
    why: 'One file of a zip, unpacked: files of an export are a few parts of 8 MiB, and a zip can claim any size.',
  },
  auditShownEntries: {
    value: 100_000,
    unit: 'count',
    by: 'client',
    why: 'Entries that verify.html keeps for its table, a kilobyte each: a browser has some hundred megabytes for a page.',
  },
  auditShownTypes: {
    value: 100,
    unit: 'count',
    by: 'client',
    why: 'Types of entries that are counted by name: a log has some thirty, and a forged bundle any number.',
  },
  auditPrintedEntries: {
    value: 1_000,
    unit: 'count',
    by: 'client',
    why: 'Entries that verify.html prints: some 25 pages. More are in the tables of the export.',
  },
} as const satisfies Record<string, Limit>;
