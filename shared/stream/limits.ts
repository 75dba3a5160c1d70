import { KiB } from '../bytes.ts';

/** State of the voice detector and its runtime in base64: about 1,500 characters. */
export const CHECKPOINT_CHARACTERS = 4 * KiB;
