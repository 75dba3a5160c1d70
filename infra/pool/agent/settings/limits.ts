import { KiB, MiB } from '../../../../shared/bytes.ts';

/** One read when artifacts are copied: a network of gigabytes passes through this much memory. */
export const MODEL_COPY_BYTES = MiB;
/** First pause before an agent reconnects to its registry. */
export const RECONNECT_MS = 500;
/** Longest flush of the last records when a stopping agent ends its requests. */
export const AGENT_FLUSH_MS = 500;
/** Idle time after which the state of a sequence is dropped (A5). */
export const SEQUENCE_IDLE_MS = 1_000;
/**
 * Sound decoded, resampled and searched for voice in one turn of the event loop: a few milliseconds of
 * computing.
 */
export const TURN_S = 1;
/** Longest piece sent to the engine at once; longer speech is cut at its quietest point. */
export const UTTERANCE_S = 20;
/** Concurrent pieces of one request at the engine; reading the body waits meanwhile. */
export const UTTERANCES_IN_FLIGHT_MAX = 4;
/** Longest inference: 20 s of audio take well under a second, so a slower engine is lost. */
export const ENGINE_MS = 30_000;
/** Event of an answer: it fits one sealed segment. */
export const ANSWER_EVENT_BYTES = 60 * KiB;
