import { KiB } from '../bytes.ts';

/** Transcript that a copy carries in the head of one record: 15 minutes of speech. */
export const MIRROR_TEXT_BYTES = 16 * KiB;
/** Words of each side that are compared: their product is the cost, some ten milliseconds. */
export const MIRROR_WORDS_MAX = 2_000;
/** Probability of stopping a revision that is no worse, over all looks and metrics. */
export const CANARY_ALPHA = 0.02;
/** Probability of passing a revision with half as many bad streams again, over all looks. */
export const CANARY_BETA = 0.05;
/** Operator's reason for moving a revision or an alias. */
export const MODEL_REASON_CHARACTERS = 500;
/** Operator's request about models: a bundle or a signed statement, and a description. */
export const MODEL_BODY_BYTES = 128 * KiB;
