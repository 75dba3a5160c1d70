/** Unanswered commits, clears and Finalizes of one client; a person makes one in a second. */
export const STREAM_REQUESTS_MAX = 256;
/**
 * Longest wait for audio in protocols whose sessions start with it: their clients connect before their user
 * speaks.
 */
export const STREAM_VOICE_MS = 300_000;
