import { no, type Result } from '../result.ts';

/**
 * Reason why a KServe message cannot be read or written. The text names fields, shapes and sizes, never
 * tensor contents, so it may be shown to the sender.
 */
export interface Fault {
  readonly reason: string;
}

export type Read<T> = Result<T, Fault>;

export const fault = (reason: string): { ok: false; refusal: Fault } => no({ reason });
