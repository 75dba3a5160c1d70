import type { Refusal } from './refusal.ts';

/** The outcome of a decision: a value, or an expected "no". Bugs throw; refusals never do. */
export type Result<T, E = Refusal> = { ok: true; value: T } | { ok: false; refusal: E };

export const ok = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });
export const no = <E>(refusal: E): { ok: false; refusal: E } => ({ ok: false, refusal });
