import { KiB, type Limit } from './limit.ts';

/** Tenants and the record. */
export const tenantLimits = {
  requestsPerMinute: { value: 600, unit: 'count', by: 'gate', why: 'Used when a token names no allowance of its own.' },
  requestsAtOnce: { value: 32, unit: 'count', by: 'gate', why: 'Used when a token names no allowance of its own.' },
  audioSecondsPerDay: {
    value: 360_000,
    unit: 's',
    by: 'gate',
    why: 'Used when a token names no allowance of its own: 100 hours.',
  },
  leaseMs: {
    value: 120_000,
    unit: 'ms',
    by: 'gate',
    why: 'A place whose holder vanished comes back after this; work that goes on renews it, and hints come before.',
  },
  reserveShare: {
    value: 0.25,
    unit: 'ratio',
    by: 'gate',
    why: 'Of an allowance, what isolates may hold without using it, all together; one of them at most half of that.',
  },
  reserveMs: {
    value: 5_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long an isolate may begin requests without hearing of the gate: one in five seconds never waits for it.',
  },
  reserveGraceMs: {
    value: 2_000,
    unit: 'ms',
    by: 'gate',
    why: 'How much longer the gate counts what it gave: reports of what was begun at the last moment are in by then.',
  },
  reserves: { value: 1_024, unit: 'count', by: 'edge', why: 'Gates of which an isolate holds a reserve.' },
  auditWaitMs: {
    value: 250,
    unit: 'ms',
    by: 'edge',
    why: 'Default of AUDIT_WAIT_MS: a gate answers in under 10 ms, so one that takes 250 is down.',
  },
  gateSteps: {
    value: 64,
    unit: 'count',
    by: 'edge',
    why: 'Steps that wait in an isolate for a call to their gate; one more and a call is made for them.',
  },
  gateLingerMs: {
    value: 20,
    unit: 'ms',
    by: 'edge',
    why: 'How long such a step waits for another call; a place comes back that much later, and nobody feels it.',
  },
  gateReportMs: {
    value: 50,
    unit: 'ms',
    by: 'edge',
    why: 'How long what requests with places held in advance did is in the isolate only, and lost should it vanish; half of what it costs at 20 ms.',
  },
  gateWriteMs: {
    value: 20,
    unit: 'ms',
    by: 'gate',
    why: 'How long what a buffered tenant did may be in memory only; one write for all of it costs what one for each would.',
  },
  auditStrainedEvents: {
    value: 250,
    unit: 'count',
    by: 'edge',
    why: 'Events that an isolate holds for one unreachable gate; with more, a buffered tenant is held to what a strict one is.',
  },
  auditStrainedMs: {
    value: 300_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long events may wait in an isolate for an unreachable gate; then a buffered tenant is held to what a strict one is.',
  },
  auditBacklogEvents: {
    value: 1_000,
    unit: 'count',
    by: 'edge',
    why: 'Events an isolate keeps for all gates that are unreachable, about 1 MiB; then the oldest go, with a gap event.',
  },
  auditEventBytes: {
    value: 16 * KiB,
    unit: 'byte',
    by: 'gate',
    why: 'A leaf of the log; larger events are a bug and are replaced by their digest.',
  },
  auditRowEvents: {
    value: 64,
    unit: 'count',
    by: 'gate',
    why: 'Events that come together are one row of an outbox; with 16 KiB each it is inside what SQLite takes.',
  },
  auditOutboxEvents: {
    value: 200_000,
    unit: 'count',
    by: 'gate',
    why: 'About 200 MiB of Durable Object storage; beyond it strict tenants are refused, others lose the oldest with a gap event.',
  },
  auditPageEvents: {
    value: 500,
    unit: 'count',
    by: 'edge',
    why: 'Events of one page of an outbox; at 16 KiB each still a small answer.',
  },
  agentOutboxEvents: {
    value: 4_096,
    unit: 'count',
    by: 'agent',
    why: 'Audit events of an agent that waits for its roster; beyond it the oldest give way to a gap event.',
  },
  agentBatchBytes: {
    value: 40 * KiB,
    unit: 'byte',
    by: 'agent',
    why: 'Audit events of one message to the roster, so that base64url and a signature keep it under heartbeatBytes.',
  },
  agentBatchEvents: { value: 64, unit: 'count', by: 'agent', why: 'Events the roster takes from one such message.' },
  anonymousDenialsPerSecond: {
    value: 10,
    unit: 'count',
    by: 'edge',
    why: 'Refusals of unknown callers recorded one by one; the rest are counted in the next record.',
  },
} as const satisfies Record<string, Limit>;
