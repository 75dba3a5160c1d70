import { KiB } from '../bytes.ts';

/** Bundles of 256 entries that one round adds to the index: a few seconds of writing. */
export const INDEX_BUNDLES_PER_ROUND_MAX = 8;
/**
 * Delivery names that one commit lists: a page of storage. With more, each commit starts at another outbox.
 */
export const INTAKE_LIST_MAX = 5_000;
/** Hashes of a proof: tlog-witness allows no more, and a log would need 2^63 entries for one more. */
export const PROOF_HASHES_MAX = 63;
/**
 * Idle time after which a producer records its end; the next event begins it again. Silence without an end is
 * a fault.
 */
export const PRODUCER_IDLE_MS = 600_000;
/** Request of a log to a witness: 63 hashes, and a checkpoint with dozens of signatures. */
export const WITNESS_REQUEST_BYTES = 64 * KiB;
/**
 * Tolerated offset of a log writer's clock from storage's: an entry in the future stops the log until then.
 * Kept clocks differ by under 1 s.
 */
export const LOG_CLOCK_MS = 60_000;
/** Tolerated clock skew of a witness: a cosignature from further in the future does not count. */
export const WITNESS_SKEW_MS = 60_000;
