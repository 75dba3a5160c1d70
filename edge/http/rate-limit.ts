import type { Figure, Quota } from '../ledger/quota.ts';

/** Kinds of bounds in header names. */
const kinds = ['requests', 'audio-seconds'] as const;

/** Names of all rate-limit headers. */
export const rateLimitNames: readonly string[] = ['limit', 'remaining', 'reset'].flatMap((what) =>
  kinds.map((kind) => `x-ratelimit-${what}-${kind}`),
);

/** Headers of a quota in OpenAI's form: counts, and a duration in whole seconds (`12s`). */
export function rateLimitHeaders(quota: Quota | undefined): Record<string, string> {
  if (!quota) return {};
  const { requests, audioSeconds } = quota;
  return { ...headersOf('requests', requests), ...headersOf('audio-seconds', audioSeconds) };
}

const headersOf = (kind: (typeof kinds)[number], { limit, remaining, resetMs }: Figure): Record<string, string> => ({
  [`x-ratelimit-limit-${kind}`]: String(limit),
  [`x-ratelimit-remaining-${kind}`]: String(remaining),
  [`x-ratelimit-reset-${kind}`]: `${Math.ceil(resetMs / 1_000)}s`,
});
