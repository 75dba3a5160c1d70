// Statistics of a load run. Pure: the caller passes the times.

/** One request. `code` is the reason of the refusal, `http_<status>` of an answer that is not the edge's, or the code of the network error. */
export interface Outcome {
  readonly milliseconds: number;
  readonly code: string | undefined;
  /** Message of the edge or the network. */
  readonly message?: string | undefined;
  /** Seconds of audio the answer says it covers. */
  readonly audioSeconds: number;
}

/** Failures of a run. */
export interface ErrorCounts {
  /** Code → how often. */
  readonly errors: Readonly<Record<string, number>>;
  /** Code → message of its first occurrence. */
  readonly messages: Readonly<Record<string, string>>;
}

export interface Summary extends ErrorCounts {
  readonly requests: number;
  readonly served: number;
  readonly wallSeconds: number;
  /** Served requests per second. */
  readonly perSecond: number;
  readonly audioSeconds: number;
  /** Seconds of audio served per second of time; above 1 is faster than real time. */
  readonly audioSecondsPerSecond: number;
  /** Milliseconds from the first byte sent to the last received, of served requests. */
  readonly latency: Latency | undefined;
}

export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly mean: number;
}

/** A refusal is fast, so its time counts nowhere. `wallMilliseconds`: from the first request to the last answer. */
export function summarize(outcomes: readonly Outcome[], wallMilliseconds: number): Summary {
  const served = outcomes.filter(({ code }) => code === undefined);
  const { errors, messages } = countErrors(outcomes);
  const wallSeconds = wallMilliseconds / 1_000;
  const audioSeconds = served.reduce((sum, one) => sum + one.audioSeconds, 0);
  const rate = (amount: number) => (wallSeconds > 0 ? amount / wallSeconds : 0);
  return {
    requests: outcomes.length,
    served: served.length,
    errors,
    messages,
    wallSeconds,
    perSecond: rate(served.length),
    audioSeconds,
    audioSecondsPerSecond: rate(audioSeconds),
    latency: latencyOf(served.map(({ milliseconds }) => milliseconds)),
  };
}

/** Returns the count of each code and the message of its first occurrence. */
export function countErrors(outcomes: readonly Pick<Outcome, 'code' | 'message'>[]): ErrorCounts {
  const errors: Record<string, number> = {};
  const messages: Record<string, string> = {};
  for (const { code, message } of outcomes) {
    if (code === undefined) continue;
    errors[code] = (errors[code] ?? 0) + 1;
    if (message) messages[code] ??= message;
  }
  return { errors, messages };
}

/** A line for each code, the most frequent first. */
export const describeErrors = ({ errors, messages }: ErrorCounts): string[] =>
  Object.entries(errors)
    .sort(([, one], [, other]) => other - one)
    .map(([code, count]) => `error       ${code}: ${count}${messages[code] ? ` (${messages[code]})` : ''}`);

/** Returns the percentiles of times in milliseconds, `undefined` without any. */
export function latencyOf(times: readonly number[]): Latency | undefined {
  const sorted = [...times].sort((one, other) => one - other);
  const max = sorted.at(-1);
  if (max === undefined) return undefined;
  const at = (share: number) => percentile(sorted, share);
  const mean = sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
  return { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max, mean };
}

/** Returns the first option below its least value or not whole, as an error text; `undefined` when there is none. */
export function countProblem(options: Readonly<Record<string, readonly [value: number, least: number]>>) {
  const found = Object.entries(options).find(([, [value, least]]) => !Number.isSafeInteger(value) || value < least);
  return found && `--${found[0]} must be a whole number from ${found[1][1]}`;
}

/** The smallest value that at least `share` of all are not above (nearest rank): always one that was measured. */
export function percentile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}
