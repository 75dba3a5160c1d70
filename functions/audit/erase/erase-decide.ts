// May a subject be erased now? Decided from what holds it and what the law wants kept, and nothing else.
import { isRetention, lawfulUntil } from '../sidecar/retention.ts';
import type { SubjectSecret } from '../sidecar/sidecar-subject.ts';

export interface ErasureFacts {
  /** A hold covers the subject or its whole tenant. */
  readonly held: boolean;
  /** The last month of records by class, for each of its secrets. */
  readonly used: readonly SubjectSecret['used'][];
}

/** `basis`: what forbids it, `hold` or a class of retention; `until` in ms since 1970, unknown of a hold. */
export type Verdict = { readonly due: true } | { readonly due: false; readonly basis: string; readonly until?: number };

export function decideErasure({ held, used }: ErasureFacts, now: number): Verdict {
  if (held) return { due: false, basis: 'hold' };
  let longest: { basis: string; until: number } | undefined;
  for (const [ret, month] of used.flatMap((one) => Object.entries(one))) {
    const until = isRetention(ret) ? lawfulUntil(ret, month) : 0;
    if (until > now && until > (longest?.until ?? 0)) longest = { basis: ret, until };
  }
  return longest ? { due: false, ...longest } : { due: true };
}
