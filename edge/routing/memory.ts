import { ANSWER_START_MS, ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { type Reason, refusals } from '../../shared/refusal.ts';

/** Failures in a row after which an agent is ejected. */
export const EJECT_FAILURES = 5;
/** Share of failures above which an agent is ejected. */
const EJECT_SHARE = 0.5;
/** Fewest requests whose share of failures counts. */
const EJECT_REQUESTS_MIN = 20;
/** Window of the requests counted for the share of failures. */
export const EJECT_WINDOW_MS = 10_000;
/** Length of an agent's first ejection; each next one is longer by as much. */
export const EJECT_MS = 10_000;
/** Longest ejection, and memory of an earlier one. */
export const EJECT_MAX_MS = 60_000;

/** Observations of one agent in this isolate. */
export interface AgentMemory {
  /** Requests sent and not finished. */
  readonly outstanding: number;
  /** Smoothed milliseconds a request took; failures count as lost for `ANSWER_START_MS`. */
  readonly ewmaMs: number | undefined;
  /** Time of the last change of `ewmaMs`, ms since 1970. */
  readonly seen: number;
  /** Failures in a row. */
  readonly row: number;
  /** Requests and failures of the current window. */
  readonly window: { readonly start: number; readonly requests: number; readonly failures: number };
  /** Left out until then; `times` in close succession. */
  readonly ejected: { readonly until: number; readonly times: number };
}

/** By agent name. Plain data of one isolate: lost with it, and never more than a hint. */
export type RouteMemory = ReadonlyMap<string, AgentMemory>;

/** `healthy`: it answered, a "no" to the caller included. `neutral`: it is busy. `failure`: it did not do its work. */
export type Outcome = 'healthy' | 'neutral' | 'failure';

const SMOOTHING = 0.2;
/** Age at which an observed latency counts for 1/e, so that an agent that was slow once is tried again. */
export const LATENCY_AGE_MS = 10_000;
const fresh: AgentMemory = {
  outstanding: 0,
  ewmaMs: undefined,
  seen: 0,
  row: 0,
  window: { start: 0, requests: 0, failures: 0 },
  ejected: { until: 0, times: 0 },
};

/** Classifies an HTTP status of an agent; `undefined` is a failed connection or a passed deadline. */
export function outcomeOf(status: number | undefined): Outcome {
  if (status === undefined) return 'failure';
  if (status === 429 || status === 503) return 'neutral';
  return status >= 500 ? 'failure' : 'healthy';
}

/** Refusals that an agent should not have had to give: its keys, clock or models are not what the roster says. */
const atFault: ReadonlySet<Reason> = new Set([
  'attestation_invalid',
  'seal_broken',
  'ticket_invalid',
  'ticket_replayed',
]);

/** Classifies a refusal of an agent. A wrong one that comes at once must not look healthy and fast. */
export function outcomeOfRefusal(reason: Reason): Outcome {
  if (reason === 'misdirected') return 'neutral';
  return atFault.has(reason) ? 'failure' : outcomeOf(refusals[reason].status);
}

/** Every `started` is followed by one `finished`, also when the caller went away: otherwise the agent looks loaded. */
export function started(memory: RouteMemory, agent: string): RouteMemory {
  return new Map(memory).set(agent, startedOne(memory.get(agent)));
}

/** Outcome of one request at an agent. */
interface FinishedWork {
  readonly outcome: Outcome;
  /** Time the agent worked, without waiting for the caller's body; 0 without work: no measure of its speed. */
  readonly ms: number;
  /** Epoch ms. */
  readonly now: number;
}

export function finished(memory: RouteMemory, agent: string, work: FinishedWork): RouteMemory {
  const next = new Map(memory).set(agent, finishedOne(memory.get(agent), work));
  forgetIdle(next, work.now);
  return next;
}

/** Counts a started request in the memory of one agent. */
export const startedOne = (known: AgentMemory = fresh): AgentMemory => ({
  ...known,
  outstanding: known.outstanding + 1,
});

export function finishedOne(known: AgentMemory = fresh, { outcome, ms, now }: FinishedWork): AgentMemory {
  const next = { ...known, outstanding: Math.max(0, known.outstanding - 1) };
  return outcome === 'neutral' ? next : count(next, outcome === 'failure', ms, now);
}

function count(known: AgentMemory, failed: boolean, ms: number, now: number): AgentMemory {
  const sample = failed ? ANSWER_START_MS : ms;
  const learned = { ewmaMs: smooth(known, sample, now), seen: now };
  const open = now - known.window.start < EJECT_WINDOW_MS;
  const { start, requests, failures } = open ? known.window : { start: now, requests: 0, failures: 0 };
  const next: AgentMemory = {
    ...known,
    ...(sample > 0 && learned),
    row: failed ? known.row + 1 : 0,
    window: { start, requests: requests + 1, failures: failures + (failed ? 1 : 0) },
  };
  const tooMany =
    next.window.requests >= EJECT_REQUESTS_MIN && next.window.failures > next.window.requests * EJECT_SHARE;
  // Requests that were under way when it was ejected say nothing new.
  if (now < known.ejected.until || !(next.row >= EJECT_FAILURES || tooMany)) return next;
  const again = now - known.ejected.until < EJECT_MAX_MS;
  const times = again ? known.ejected.times + 1 : 1;
  const until = now + Math.min(times * EJECT_MS, EJECT_MAX_MS);
  return { ...next, row: 0, window: fresh.window, ejected: { until, times } };
}

/**
 * Moves the latency towards a sample: by SMOOTHING, and further the older it is. An agent that was slow in an overload
 * gets few requests after it, and the first of them must count.
 */
function smooth({ ewmaMs, seen }: AgentMemory, sample: number, now: number): number {
  if (ewmaMs === undefined) return sample;
  const kept = (1 - SMOOTHING) * Math.exp(-Math.max(0, now - seen) / LATENCY_AGE_MS);
  return sample + kept * (ewmaMs - sample);
}

/** Agents come and go; what is idle for long has nothing to say, and the memory stays as small as the fleet. */
export function forgetIdle(memory: Map<string, AgentMemory>, now: number): void {
  if (memory.size <= ROSTER_AGENTS_MAX) return;
  for (const [agent, { outstanding, seen }] of memory)
    if (outstanding === 0 && now - seen > EJECT_MAX_MS) memory.delete(agent);
}

/**
 * Returns the candidates without the ejected ones, but at least half of every zone: when most of a zone
 * fails, the fault is more likely ours, and an empty zone serves no request. The ejections that end first are
 * lifted first.
 */
export function withoutEjected<T extends { readonly agent: string; readonly zone: string }>(
  candidates: readonly T[],
  memory: RouteMemory,
  now: number,
): readonly T[] {
  const until = ({ agent }: T) => memory.get(agent)?.ejected.until ?? 0;
  if (!candidates.some((candidate) => until(candidate) > now)) return candidates;
  const out = new Set<T>();
  for (const zone of new Set(candidates.map((candidate) => candidate.zone))) {
    const members = candidates.filter((candidate) => candidate.zone === zone);
    const ejected = members.filter((candidate) => until(candidate) > now).sort((a, b) => until(b) - until(a));
    for (const candidate of ejected.slice(0, Math.floor(members.length / 2))) out.add(candidate);
  }
  return candidates.filter((candidate) => !out.has(candidate));
}
