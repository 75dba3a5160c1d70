import { type Limit, MiB } from './limit.ts';

/** Uploads as the edge and clients meet them. */
export const uploadFrontLimits = {
  uploadAskMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'What the back office does for the edge is a few table operations; its host may have to start first.',
  },
  uploadBlockBytes: {
    value: 4 * MiB,
    unit: 'byte',
    by: 'client',
    why: 'A file is written in blocks of so much, each held while it is sent; 4 GiB take a fiftieth of the blocks a blob may have.',
  },
  uploadWords: {
    value: 3 * 65_536,
    unit: 'count',
    by: 'edge',
    why: 'Twelve hours of fast speech; a transcript is held whole for formats that need it.',
  },
  blockTries: {
    value: 3,
    unit: 'count',
    by: 'edge',
    why: 'Tries of one block that the edge writes for a caller who waits.',
  },
  followFailures: {
    value: 3,
    unit: 'count',
    by: 'edge',
    why: 'Looks in a row that fail, each with its own deadline, before a follower is told.',
  },
  preflightSeconds: {
    value: 7_200,
    unit: 's',
    by: 'edge',
    why: 'A browser may remember the answer to a preflight so long; Chromium caps it at as much.',
  },
} as const satisfies Record<string, Limit>;
