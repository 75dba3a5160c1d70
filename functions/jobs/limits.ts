/** Time after which a job without a record of its sending is not in another sender's hands. */
export const JOB_SENDING_MS = 1_000;
/**
 * Jobs of one tenant in the queue of a model; the rest wait in a table, so that 10,000 files of one tenant
 * block no other.
 */
export const UPLOAD_WINDOW = 16;
/** Time since its last report in which an agent owns a job (three reports); another copy of it is refused. */
export const JOB_LEASE_MS = 30_000;
/** Conditional writes of one row that may lose in a row: results of many pieces arrive together. */
export const JOB_RACE_TRIES_MAX = 12;
