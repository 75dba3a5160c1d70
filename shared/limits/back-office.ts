import type { Limit } from './limit.ts';

/** Looks, calls and stores of the functions. */
export const backOfficeLimits = {
  lookTenants: {
    value: 100_000,
    unit: 'count',
    by: 'functions',
    why: 'Tenants of one look of the timer: their names are held at once, some ten megabytes.',
  },
  lookTenantsAtOnce: {
    value: 4,
    unit: 'count',
    by: 'functions',
    why: 'Tenants looked after at a time: one that is slow does not hold up all others, and the table is not flooded.',
  },
  placeNames: {
    value: 10_000,
    unit: 'count',
    by: 'functions',
    why: 'Hosts that did not answer notices: tenants make them up, so the oldest are forgotten beyond so many.',
  },
  replayCalls: {
    value: 100,
    unit: 'count',
    by: 'functions',
    why: "Calls of one replay that find something: an operator's request has an end, and is said again.",
  },
  noticeAgainMs: {
    value: 120_000,
    unit: 'ms',
    by: 'functions',
    why: 'A notice that was queued and of which nothing was heard for so long is queued again: longer than one attempt with its deadline.',
  },
  lookBookings: {
    value: 200,
    unit: 'count',
    by: 'functions',
    why: 'Rows that one look books; the next look goes on.',
  },
  lookDueUploads: {
    value: 200,
    unit: 'count',
    by: 'functions',
    why: 'Uploads of a tenant that one look takes up; the next look goes on.',
  },
  lookQueuedUploads: {
    value: 1_000,
    unit: 'count',
    by: 'functions',
    why: 'Uploads of a tenant whose waiting one look counts; the next look goes on.',
  },
  jobSendingMs: {
    value: 1_000,
    unit: 'ms',
    by: 'functions',
    why: 'A job that is not noted as sent after this long is not being sent by somebody else.',
  },
  healthAnswerMs: {
    value: 2_000,
    unit: 'ms',
    by: 'functions',
    why: 'A store that has not answered after this long counts as unreachable.',
  },
  rowChanges: {
    value: 100,
    unit: 'count',
    by: 'functions',
    why: 'Changes of one transaction, and rows of one scan: what Azure Tables takes.',
  },
  rowPartCharacters: {
    value: 30_000,
    unit: 'character',
    by: 'functions',
    why: 'Of a value in one property: Azure Tables takes 64 KiB of UTF-16.',
  },
  rowParts: {
    value: 5,
    unit: 'count',
    by: 'functions',
    why: 'Properties that one value is spread over: a row stays far below the 1 MiB that Azure Tables takes.',
  },
  blobCallTries: {
    value: 3,
    unit: 'count',
    by: 'functions',
    why: 'Tries of one call of blobs or tables, the first included; callers bring their own deadline.',
  },
  blobPauseMs: {
    value: 200,
    unit: 'ms',
    by: 'functions',
    why: "First pause between two tries; the library's own default is four seconds.",
  },
  blobSkewMs: {
    value: 60_000,
    unit: 'ms',
    by: 'functions',
    why: 'Clocks differ: an address is good from a little before now.',
  },
  queueTries: {
    value: 3,
    unit: 'count',
    by: 'functions',
    why: 'Tries of one call of SQS, the first included.',
  },
  queueBatch: {
    value: 10,
    unit: 'count',
    by: 'functions',
    why: 'Messages of one call: what SQS takes.',
  },
  deadInvisibleSeconds: {
    value: 60,
    unit: 's',
    by: 'functions',
    why: 'How long a dead letter that is being replayed is nobody else’s: long enough to send and delete it.',
  },
  auditStartMs: {
    value: 5_000,
    unit: 'ms',
    by: 'functions',
    why: 'How long the containers of the logs may take to be made: functions start without them and try again.',
  },
} as const satisfies Record<string, Limit>;
