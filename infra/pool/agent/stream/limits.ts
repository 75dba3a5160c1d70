/** First pause before a failed engine is called again; it doubles up to a second. */
export const STREAM_PAUSE_MS = 100;
/** Concurrent calls that end sequences; they must not take the engine's connections from steps. */
export const SEQUENCE_ENDS_CONCURRENT_MAX = 16;
