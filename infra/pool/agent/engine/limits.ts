import { MiB } from '../../../../shared/bytes.ts';

/** Work waiting for an engine slot, all requests together; more is refused as busy. */
export const QUEUED_UTTERANCES_MAX = 256;
/** Answer of the engine: 20 s of log probabilities over 4,096 tokens every 40 ms take 8 MiB. */
export const ENGINE_ANSWER_BYTES = 16 * MiB;
