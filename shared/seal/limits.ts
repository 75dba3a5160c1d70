import { KiB } from '../bytes.ts';

/**
 * Plaintext of one sealed record: small enough to start work early, large enough that framing costs 0.03 %.
 */
export const SEAL_SEGMENT_BYTES = 64 * KiB;
/** Longest use of one HPKE set-up by an isolate and an agent. */
export const SEAL_SETUP_MS = 600_000;
/** Attestation token, parsed before its sender is authenticated; real ones are 4 to 8 KiB. */
export const ATTESTATION_CHARACTERS = 16 * KiB;
/** Life of a ticket, which is used at once; the agent remembers its id this long. */
export const TICKET_S = 60;
/** Encapsulated key as base64url; P-256 takes 87, larger curves under 200. */
export const ENCAPSULATED_CHARACTERS = 512;
