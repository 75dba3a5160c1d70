/**
 * Windows measured until three agree on latency: evidence carries at most 100, and a busy machine measures
 * nothing.
 */
export const MEASURE_WINDOWS_MAX = 75;
/** Recordings of one window, all in memory: its 95th percentile is then not the slowest of all. */
export const MEASURE_WINDOW_REQUESTS = 50;
/**
 * Streams of the load gate, and callers of recordings in parallel: together they fill a batch of 8, the
 * smallest usual preference.
 */
export const MEASURE_STREAMS = 6;
/** Recordings recognised concurrently where only their words matter. */
export const MEASURE_CONCURRENT_MAX = 4;
