import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { classes, type RequestClass } from '../../shared/tenant/claims.ts';
import type { RouteMemory } from './memory.ts';

/** Age at which a load report counts for 1/e: queues of short utterances turn over about that fast. */
const LOAD_AGE_MS = 2_000;
/** Age at which an observed latency counts for 1/e, so that an agent that was slow once is tried again. */
const LATENCY_AGE_MS = 10_000;

type Loaded = Pick<RosterEntry, 'description' | 'load' | 'heard'>;

/** 1 for news, 1/e after `scale` ms, towards 0: how much a statement of that age still counts. */
const weightOf = (age: number, scale: number): number => Math.exp(-Math.max(0, age) / scale);

/** Utterances that would be served before one of `ours`, as far as the report can still be believed. */
function queuedAhead(entry: Loaded, ours: RequestClass, now: number): number {
  const urgent = classes.slice(0, classes.indexOf(ours) + 1);
  const waiting = urgent.reduce((sum, name) => sum + entry.load.queued[name], 0);
  return waiting * weightOf(now - entry.heard, LOAD_AGE_MS);
}

/** Requests that hold a slot: as reported while that is fresh, and never fewer than we have there ourselves. */
function busyAt(entry: Loaded, memory: RouteMemory, now: number): number {
  const reported = entry.load.busy * weightOf(now - entry.heard, LOAD_AGE_MS);
  return Math.max(reported, memory.get(entry.description.agent)?.outstanding ?? 0);
}

/**
 * Live streams for each slot, with one more. They last, so what was reported does not fade, and what this isolate has
 * opened there since counts at once.
 */
export function streamCost({ description, load }: Loaded, memory: RouteMemory): number {
  const { agent, slots } = description;
  return (Math.max(load.streams ?? 0, memory.get(agent)?.outstanding ?? 0) + 1) / slots;
}

/** Reports whether all slots are taken and work of this class or above waits. */
export function isSaturated(entry: Loaded, ours: RequestClass, memory: RouteMemory, now: number): boolean {
  return busyAt(entry, memory, now) >= entry.description.slots && queuedAhead(entry, ours, now) >= 1;
}

interface CostContext {
  readonly memory: RouteMemory;
  readonly now: number;
  /** See `typicalMs`. */
  readonly typical: number;
}

/**
 * Milliseconds until a request of class `ours` would be done there: how long one takes, more when the slots are full,
 * and the queue before it. What was observed long ago, or never, becomes `typical`.
 */
export function costOf(entry: Loaded, ours: RequestClass, { memory, now, typical }: CostContext): number {
  const { slots, agent } = entry.description;
  const known = memory.get(agent);
  const observed = known?.ewmaMs ?? typical;
  const one = typical + (observed - typical) * weightOf(now - (known?.seen ?? now), LATENCY_AGE_MS);
  const service = entry.load.serviceMs || one;
  return (
    one * Math.max(1, (busyAt(entry, memory, now) + 1) / slots) + (queuedAhead(entry, ours, now) * service) / slots
  );
}

/**
 * Returns the typical time of a request in this fleet, ms: from observed latencies, recent ones first, else
 * from the agents' reports. An agent that was slow long ago does not define what is typical.
 */
export function typicalMs(entries: readonly Loaded[], memory: RouteMemory, now: number): number {
  const observed = entries.flatMap(({ description }) => {
    const { ewmaMs, seen } = memory.get(description.agent) ?? {};
    if (ewmaMs === undefined || seen === undefined) return [];
    return [{ value: ewmaMs, weight: weightOf(now - seen, LATENCY_AGE_MS) }];
  });
  const reported = entries.map(({ load }) => ({ value: load.serviceMs, weight: load.serviceMs > 0 ? 1 : 0 }));
  return mean(observed) ?? mean(reported) ?? 1;
}

function mean(values: readonly { readonly value: number; readonly weight: number }[]): number | undefined {
  const total = values.reduce((sum, { weight }) => sum + weight, 0);
  return total > 0 ? values.reduce((sum, { value, weight }) => sum + value * weight, 0) / total : undefined;
}
