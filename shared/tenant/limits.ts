import { KiB } from '../bytes.ts';

/** Token, parsed before its sender is authenticated; real ones are under 2 KiB. */
export const TOKEN_CHARACTERS = 8 * KiB;
