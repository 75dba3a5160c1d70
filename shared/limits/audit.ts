import { KiB, type Limit, MiB } from './limit.ts';

/** The audit log: from an outbox of the edge into tiles, and out again. */
export const auditLimits = {
  auditDeliveryRows: {
    value: 256,
    unit: 'count',
    by: 'functions',
    why: 'Rows of one delivery of an outbox: one call a second moves what a busy gate writes.',
  },
  auditDeliveryCharacters: {
    value: 1 * MiB,
    unit: 'character',
    by: 'gate',
    why: 'Events of one delivery; past it the rest goes with the next one. A row alone has at most 64 times 16 KiB.',
  },
  auditDeliveryBytes: {
    value: 4 * MiB,
    unit: 'byte',
    by: 'functions',
    why: 'Body of one delivery: auditDeliveryCharacters of up to three bytes each, and what JSON puts around them.',
  },
  auditShipMs: {
    value: 500,
    unit: 'ms',
    by: 'gate',
    why: 'How long an event waits for others before the outbox is delivered: an event is in the log within seconds.',
  },
  auditAskMs: {
    value: 1_000,
    unit: 'ms',
    by: 'gate',
    why: 'Pause before an outbox asks whether the log has what it delivered; the log commits once a second.',
  },
  auditResendMs: {
    value: 15_000,
    unit: 'ms',
    by: 'gate',
    why: 'What the log does not have after so long was lost on the way: one life of a lease, and it is sent again.',
  },
  auditRetryMs: {
    value: 60_000,
    unit: 'ms',
    by: 'gate',
    why: 'Longest pause between two tries to deliver; the first is auditAskMs, each next one twice as long.',
  },
  auditDeliveryMs: {
    value: 10_000,
    unit: 'ms',
    by: 'gate',
    why: 'How long one delivery may take before it is tried again.',
  },
  auditReadMs: {
    value: 10_000,
    unit: 'ms',
    by: 'edge',
    why: 'How long a reader of a log waits; storage needs milliseconds, its host may have to start.',
  },
  auditEntriesPerCommit: {
    value: 4_096,
    unit: 'count',
    by: 'functions',
    why: 'Entries of one commit: about 4 MiB of write-ahead record, and 16 full tiles.',
  },
  auditLeafCharacters: {
    value: 20 * KiB,
    unit: 'character',
    by: 'functions',
    why: 'A leaf before it has its place, so that with it and in UTF-8 it is no longer than the 65,535 bytes of an entry.',
  },
  auditGapMs: {
    value: 600_000,
    unit: 'ms',
    by: 'functions',
    why: 'How long a delivery waits for the one before it; outboxes send again every 15 s, so what has not come by then is lost.',
  },
  auditIntakeList: {
    value: 256,
    unit: 'count',
    by: 'functions',
    why: 'Deliveries that one commit looks at; the others wait a second for the next.',
  },
  auditStateBytes: {
    value: 1 * MiB,
    unit: 'byte',
    by: 'functions',
    why: 'State of one log: about 10,000 outboxes and tenants. Beyond it new outboxes wait, and a line of the log says so.',
  },
  auditLeaseSeconds: {
    value: 15,
    unit: 's',
    by: 'functions',
    why: 'How long a sequencer that vanished keeps others from writing: the shortest lease that storage gives.',
  },
  auditPolicyBytes: {
    value: 256 * KiB,
    unit: 'byte',
    by: 'client',
    why: 'A policy of a log: 32 logs, witnesses and groups have to be possible, and each takes a few hundred bytes.',
  },
  auditProofHashes: {
    value: 63,
    unit: 'count',
    by: 'client',
    why: 'Hashes of a proof: tlog-witness allows no more, and a log would need 2^63 entries for one more.',
  },
  auditReportMs: {
    value: 2_000,
    unit: 'ms',
    by: 'functions',
    why: 'How long a function waits until what it does is on record; then it does not do it. Storage needs 5 to 50 ms.',
  },
  auditReportEvents: {
    value: 1_024,
    unit: 'count',
    by: 'functions',
    why: 'Reports of one process and zone that wait at once: what storage takes in auditReportMs at four writes of a batch.',
  },
  auditReportBatch: {
    value: 256,
    unit: 'count',
    by: 'functions',
    why: 'Reports in one write: as many as rows of a delivery.',
  },
  auditRenewMs: { value: 5_000, unit: 'ms', by: 'functions', why: 'Age at which a sequencer renews its lease.' },
} as const satisfies Record<string, Limit>;
