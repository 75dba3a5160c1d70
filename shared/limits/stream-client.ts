import { KiB, type Limit, MiB } from './limit.ts';

/** Live streams, for their clients: a file of its own, since `edge/client` brings it into browsers. */
export const streamClientLimits = {
  streamClientBytes: {
    value: 3 * MiB,
    unit: 'byte',
    by: 'client',
    why: 'Unsettled audio that a client of /v1/stream may have sent: under streamPacedBytes, so that nothing overflows.',
  },
  streamPingMs: {
    value: 10_000,
    unit: 'ms',
    by: 'client',
    why: 'How often a client of /v1/stream says that it is there; two without an answer and it connects again.',
  },
  clientSilenceMs: {
    value: 25_000,
    unit: 'ms',
    by: 'client',
    why: 'An edge that has not answered two pings by then is gone.',
  },
  clientMessageBytes: {
    value: 32 * KiB,
    unit: 'byte',
    by: 'client',
    why: 'Audio in one message: a second of 16 kHz sound; larger sends are cut, but for packets.',
  },
  clientWindowBytes: {
    value: 512 * KiB,
    unit: 'byte',
    by: 'client',
    why: 'Unsettled audio before the edge has said how much it takes: a sender waits then.',
  },
  clientPatienceMs: {
    value: 60_000,
    unit: 'ms',
    by: 'client',
    why: 'Without a session, unless the app says otherwise: twice as long as an edge waits, so an edge that restarts is met.',
  },
  clientPauseMs: { value: 5_000, unit: 'ms', by: 'client', why: 'Longest pause between two attempts to connect.' },
  clientTries: {
    value: 3,
    unit: 'count',
    by: 'client',
    why: 'Sessions in a row that were refused under way, or tokens that had expired: more would be so for ever.',
  },
  clientFirstPauseMs: {
    value: 100,
    unit: 'ms',
    by: 'client',
    why: 'First pause before a client of /v1/stream connects again; it doubles.',
  },
} as const satisfies Record<string, Limit>;
