// Clocks that differ by more than signed times allow for. A refusal names the clock and its offset.

/** Tolerated clock skew of token issuers; more would stretch every expiry. */
export const CLOCK_SKEW_S = 30;

/**
 * Describes the clock of `owner` (`the agent's`) that shows `theirs` while the own clock shows `own`, both ms since
 * 1970. `undefined` within the tolerance for signed times.
 */
export function describeOffset(owner: string, theirs: number, own: number): string | undefined {
  const seconds = Math.round((theirs - own) / 1_000);
  if (Math.abs(seconds) <= CLOCK_SKEW_S) return undefined;
  return `${owner} clock is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead' : 'behind'}`;
}
