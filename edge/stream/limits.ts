/**
 * Life of a session whose client lost its connection: a phone that changes its network is back in 1 to 10 s.
 */
export const STREAM_RESUME_MS = 30_000;
/** Time without audio or a message after which a client is lost; its slot goes to another. */
export const STREAM_IDLE_MS = 60_000;
/**
 * Longest time without progress after the end of the input: several of the longest utterances at real-time
 * speed.
 */
export const STREAM_FINISH_MS = 120_000;
/** Interval of the checks of a session's deadlines, of which the shortest is six times that. */
export const STREAM_TICK_MS = 1_000;
/** Last segments stored for a client that resumes; one that lacks more starts from its token. */
export const STREAM_STORED_SEGMENTS = 64;
