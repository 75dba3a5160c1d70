/** Longest pause between reconnects; a restarted registry must find its agents soon. */
export const RECONNECT_MAX_MS = 10_000;
/** Age at which a snapshot of an unreachable registry no longer locates pools. */
export const SNAPSHOT_STALE_MS = 30_000;
/** Interval of an agent's reports. */
export const HEARTBEAT_MS = 1_000;
/** Age at which a report says nothing about load any more. */
export const HEARTBEAT_UNKNOWN_MS = 3_000;
/** Silence after which an agent is no candidate. */
export const HEARTBEAT_GONE_MS = 10_000;
/** Agents of one zone; a snapshot must stay small enough to read every second. */
export const ROSTER_AGENTS_MAX = 512;
/**
 * Longest wait for the start of an agent's answer, which precedes reading the body; a slower agent is lost.
 */
export const ANSWER_START_MS = 5_000;
/** Silence after which an agent is lost: it sends a keepalive every 5 s, so three are missing. */
export const ANSWER_SILENCE_MS = 15_000;
/**
 * Share of request slots, queue and buffered bytes guaranteed to each class: 4 of 64 requests, as many as the
 * engine has slots.
 */
export const CLASS_SHARE = 1 / 16;
