import { KiB, type Limit } from './limit.ts';

/** Live streams of the command line. */
export const cliLimits = {
  liveOpenMs: {
    value: 30_000,
    unit: 'ms',
    by: 'client',
    why: 'For the answer to a handshake and the start of a stream of the CLI, and for finding an edge again.',
  },
  liveFinishMs: {
    value: 60_000,
    unit: 'ms',
    by: 'client',
    why: 'How long the CLI waits for the last words after it has sent everything.',
  },
  liveBufferedBytes: {
    value: 256 * KiB,
    unit: 'byte',
    by: 'client',
    why: 'On its way from the CLI: with more the sender waits.',
  },
  liveOpening: {
    value: 25,
    unit: 'count',
    by: 'client',
    why: 'Handshakes of the load client at once: it must not look like an attack.',
  },
} as const satisfies Record<string, Limit>;
