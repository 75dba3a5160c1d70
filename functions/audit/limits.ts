/** Years of logs that the index covers: one more than the longest retention. */
export const SEARCH_YEARS_MAX = 8;
/**
 * Silence after which a process of functions is gone: twice PRODUCER_SILENT_MS, so that an alert comes first.
 */
export const PRODUCER_GONE_MS = 3_600_000;
/** Interval of entries in an idle log: they distinguish an idle log from a stopped one. */
export const LOG_TICK_MS = 60_000;
/**
 * Conditional writes of one object that may fail in a row: each failure means another writer succeeded, and
 * writers are few.
 */
export const AUDIT_RACE_TRIES_MAX = 8;
