import type { Figure, Quota } from '../../shared/tenant/quota.ts';

/** Kinds of bounds, as the headers name them. */
const kinds = ['requests', 'audio-seconds'] as const;

/** Names of all headers that tell what is left of an allowance. */
export const rateLimitNames: readonly string[] = ['limit', 'remaining', 'reset'].flatMap((what) =>
  kinds.map((kind) => `x-ratelimit-${what}-${kind}`),
);

/** The headers of a quota, named and written as OpenAI's: counts, and a duration in whole seconds (`12s`). */
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
