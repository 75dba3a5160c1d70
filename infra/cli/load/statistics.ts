// What a load run adds up to. Pure: times are handed in.

/** One request. `code` is the reason of the refusal, `http_<status>` of an answer that is not the edge's, or the code of the network error. */
export interface Outcome {
  readonly milliseconds: number;
  readonly code: string | undefined;
  /** What the edge or the network said of it, for people. */
  readonly message?: string | undefined;
  /** Seconds of audio the answer says it covers. */
  readonly audioSeconds: number;
}

export interface Summary {
  readonly requests: number;
  readonly served: number;
  /** Code → how often. */
  readonly errors: Readonly<Record<string, number>>;
  /** Code → what was said the first time. */
  readonly messages: Readonly<Record<string, string>>;
  readonly wallSeconds: number;
  /** Served requests per second. */
  readonly perSecond: number;
  readonly audioSeconds: number;
  /** Seconds of audio served per second of time; above 1 is faster than real time. */
  readonly audioSecondsPerSecond: number;
  /** Of served requests, milliseconds from the first byte sent to the last received; absent when none was served. */
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

/** How often each code came, and what was said the first time. */
export function countErrors(
  outcomes: readonly Pick<Outcome, 'code' | 'message'>[],
): Pick<Summary, 'errors' | 'messages'> {
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
export const describeErrors = ({ errors, messages }: Pick<Summary, 'errors' | 'messages'>): string[] =>
  Object.entries(errors)
    .sort(([, one], [, other]) => other - one)
    .map(([code, count]) => `error       ${code}: ${count}${messages[code] ? ` (${messages[code]})` : ''}`);

/** Of any times, in milliseconds; `undefined` when there are none. */
export function latencyOf(times: readonly number[]): Latency | undefined {
  const sorted = [...times].sort((one, other) => one - other);
  const max = sorted.at(-1);
  if (max === undefined) return undefined;
  const at = (share: number) => percentile(sorted, share);
  const mean = sorted.reduce((sum, one) => sum + one, 0) / sorted.length;
  return { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max, mean };
}

/** The smallest value that at least `share` of all are not above (nearest rank): always one that was measured. */
export function percentile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}
