import { KiB } from '../shared/bytes.ts';

/** Longest call of a log reader: storage needs milliseconds, its host may have to start. */
export const AUDIT_READ_TIMEOUT_MS = 10_000;
/** Time without bytes after which a client's body is given up: it holds a slot that another could use. */
export const BODY_IDLE_MS = 20_000;
/** Resume token: a checkpoint of at most CHECKPOINT_CHARACTERS and some names. */
export const RESUME_TOKEN_CHARACTERS = 16 * KiB;
/** Requests a minute of a tenant whose token names no allowance. */
export const REQUESTS_PER_MINUTE = 600;
/** Concurrent requests of a tenant whose token names no allowance. */
export const REQUESTS_CONCURRENT = 32;
/** Audio a day of a tenant whose token names no allowance: 100 hours. */
export const AUDIO_PER_DAY_S = 360_000;
