import type { Limit } from './limit.ts';

/** The command line. */
export const cliLimits = {
  liveOpenMs: {
    value: 30_000,
    unit: 'ms',
    by: 'client',
    why: 'For the answer to a handshake and the start of a stream of the CLI, and for finding an edge again.',
  },
  liveOpening: {
    value: 25,
    unit: 'count',
    by: 'client',
    why: 'Handshakes of the load client at once: it must not look like an attack.',
  },
  uploadTries: {
    value: 6,
    unit: 'count',
    by: 'client',
    why: 'Tries of one block of a file: a minute without the network is nothing to a file that took ten.',
  },
  followSilences: {
    value: 20,
    unit: 'count',
    by: 'client',
    why: 'Connections in a row that tell nothing, before the CLI stops following.',
  },
  projectTries: {
    value: 6,
    unit: 'count',
    by: 'client',
    why: 'Tries of handing in a document: the name makes it one project.',
  },
  uploadPauseMs: {
    value: 15_000,
    unit: 'ms',
    by: 'client',
    why: 'Longest pause between two tries.',
  },
  uploadMarginMs: {
    value: 60_000,
    unit: 'ms',
    by: 'client',
    why: 'Before an address expires in which nothing is begun: a block takes its time.',
  },
  projectEditTries: {
    value: 4,
    unit: 'count',
    by: 'client',
    why: 'How often somebody else may be faster at changing the same project.',
  },
  auditTailEntries: {
    value: 20,
    unit: 'count',
    by: 'client',
    why: 'Entries that audit tail shows: what fits on a screen.',
  },
} as const satisfies Record<string, Limit>;
