import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { classes, type RequestClass } from '../../shared/tenant/claims.ts';
import { rttMs } from './distance.ts';
import { LATENCY_AGE_MS, type RouteMemory } from './memory.ts';
import type { RouteRequest } from './route.ts';

/** Age at which a load report counts for 1/e: queues of short utterances turn over about that fast. */
const LOAD_AGE_MS = 2_000;
/** Delay of a live stream's words for each stream a slot serves: one pass of the engine. */
const STREAM_MS = 20;
/**
 * Share of its streams up to which an accelerator is preferred for its device (A9). Beyond it processors share the
 * streams: a report is up to two seconds old, and a preference up to the last place has them refused.
 */
const STREAMS_PREFERRED_MAX = 2 / 3;
/** Share of its power budget above which an agent hands work to processors (A14). */
const POWER_SHARE_MAX = 0.8;
/** Extra time that a request accepts at a processor to spare an agent above POWER_SHARE_MAX. */
const POWER_MS = 1_000;
/** Extra time that a default or batch request accepts at an idle processor, which leaves accelerators to speech (T5). */
const LIGHT_MS = 250;
/** Extra time that a request accepts to avoid one step of degradation (A20). */
const DEGRADED_MS = 200;
/** Extra time that a default or batch request accepts at a free slot instead of the dearest one of the fleet. */
const PRICE_MS = 20;

/**
 * Extra milliseconds of a realtime request on each device (A9), in the order of their FP16 rate: 990 TFLOPS of an
 * h100, 312 of an a100, 121 of an l4, 65 of a t4. A device of another name counts as the middle of the list.
 */
const deviceMs: Readonly<Record<string, number>> = {
  b200: 0,
  h200: 0,
  h100: 0,
  l40s: 20,
  a100: 20,
  a10: 40,
  l4: 40,
  v100: 40,
  t4: 60,
};
const UNKNOWN_DEVICE_MS = 40;
/** Extra milliseconds of a MIG slice beside those of its GPU, by compute slices: 45 TFLOPS of 1g of an a100 (A12). */
const sliceMs: Readonly<Record<string, number>> = { '1g': 40, '2g': 20, '3g': 20, '4g': 20 };
/** Extra milliseconds of a realtime request on a processor: more than any queue that is worth waiting in. */
const PROCESSOR_MS = 1_000;
/** Extra milliseconds that halve the probability of a draw: an h100 is drawn twice as often as an a100. */
const DEVICE_HALF_MS = 20;

/** Time for which facts about a whole fleet hold: its typical latency and prices change slowly. */
const CONTEXT_MS = 50;

type Loaded = Pick<RosterEntry, 'description' | 'load' | 'heard'>;
interface Listed {
  readonly entry: Loaded;
}
type Requested = Pick<RouteRequest, 'class' | 'realtime' | 'live' | 'place'>;

/** Cost of a request at an agent, ms by term. `service` and `queue` are measured; the others are policy. */
export interface Cost {
  /** Time that the agent takes, more when its slots are full. */
  readonly service: number;
  readonly queue: number;
  /** Estimated round trip between edge and region. */
  readonly distance: number;
  readonly device: number;
  readonly light: number;
  readonly power: number;
  readonly degraded: number;
  readonly price: number;
}

/** Free share of an agent that reports no place for a stream: it is drawn where there is no other one. */
const FREE_MIN = 1e-9;

/** Facts of a decision that the costs of all candidates share. */
export interface CostContext {
  readonly memory: RouteMemory;
  readonly now: number;
  /** See `typicalMs`. */
  readonly typical: number;
  /** An accelerator with a free slot and power left serves the request. */
  readonly hasFast: boolean;
  /** Such an accelerator reports a free slot. */
  readonly hasFree: boolean;
  /** A processor serves the request. */
  readonly hasProcessor: boolean;
  /** Highest price of a slot-hour among the candidates, US dollars; 0 when none says. */
  readonly dearest: number;
  /** The request is a live stream. */
  readonly live: boolean;
}

/** 1 for news, 1/e after `scale` ms, towards 0: how much a statement of that age still counts. */
const weightOf = (age: number, scale: number): number => (age > 0 ? Math.exp(-age / scale) : 1);

/** Utterances that would be served before one of `ours`, as far as the report can still be believed. */
function queuedAhead({ load, heard }: Loaded, ours: RequestClass, now: number): number {
  let waiting = 0;
  for (const name of classes) {
    waiting += load.queued[name];
    if (name === ours) break;
  }
  return waiting && waiting * weightOf(now - heard, LOAD_AGE_MS);
}

/**
 * Requests that hold a slot: as reported while that is fresh, and never fewer than we have there ourselves. A report counts
 * open requests: those beyond the slots wait, most of them behind a more urgent one, and are in `queuedAhead` otherwise.
 */
function busyAt({ description, load, heard }: Loaded, memory: RouteMemory, now: number): number {
  const reported = load.busy && Math.min(load.busy, description.slots) * weightOf(now - heard, LOAD_AGE_MS);
  return Math.max(reported, memory.get(description.agent)?.outstanding ?? 0);
}

const isProcessor = ({ description }: Loaded): boolean => description.accelerator === 'cpu';
const isHot = ({ load }: Loaded): boolean => (load.power ?? 0) > POWER_SHARE_MAX;
const slotPrice = ({ description: { price, slots } }: Loaded): number | undefined =>
  price === undefined ? undefined : price / slots;

/** Reports whether a person waits for each word. */
export const isRealtime = ({ realtime, class: name }: Requested): boolean => realtime === true || name === 'realtime';

/** Reports whether all slots are taken and work of this class or above waits. */
function isSaturated(entry: Loaded, ours: RequestClass, memory: RouteMemory, now: number): boolean {
  return busyAt(entry, memory, now) >= entry.description.slots && queuedAhead(entry, ours, now) >= 1;
}

/** Returns the share of an agent's streams that are free, at least `FREE_MIN`. */
const freeOfStreams = ({ description: { streams = Number.POSITIVE_INFINITY }, load }: Loaded): number =>
  Math.max(FREE_MIN, 1 - (load.streams ?? 0) / streams);

/** Reports whether an agent has many places for live streams left. */
const isOpenToStreams = (entry: Loaded): boolean => freeOfStreams(entry) > 1 - STREAMS_PREFERRED_MAX;

/** The last contexts of a list of candidates, by class and whether the request is realtime or live. */
const contexts = new WeakMap<readonly Listed[], Map<string, CostContext>>();

/** Reads what the costs of all candidates share; again after `CONTEXT_MS` for the same list. */
export function costContext(
  listed: readonly Listed[],
  request: Requested,
  memory: RouteMemory,
  now: number,
): CostContext {
  const fast = isRealtime(request);
  const live = request.live === true;
  const kind = `${request.class} ${fast} ${live}`;
  const ofList = contexts.get(listed) ?? new Map<string, CostContext>();
  const cached = ofList.get(kind);
  const isFresh = cached?.memory === memory && now >= cached.now && now - cached.now < CONTEXT_MS;
  if (isFresh) return { ...cached, now };
  const hasProcessor = listed.some(({ entry }) => isProcessor(entry));
  const isFast = ({ entry }: Listed) =>
    !isProcessor(entry) &&
    !(hasProcessor && isHot(entry)) &&
    (live ? isOpenToStreams(entry) : !isSaturated(entry, request.class, memory, now));
  const free = fast ? listed.filter(isFast) : [];
  const hasFast = free.length > 0;
  const hasFree = free.some(({ entry: { load, description } }) => load.busy < description.slots);
  const dearest = listed.reduce((most, { entry }) => Math.max(most, slotPrice(entry) ?? 0), 0);
  const typical = typicalMs(listed, memory, now);
  const context = { memory, now, typical, hasFast, hasFree, hasProcessor, dearest, live };
  contexts.set(listed, ofList.set(kind, context));
  return context;
}

/** Returns the cost of a request at an agent, by term. */
export function costOf(entry: Loaded, request: Requested, context: CostContext): Cost {
  const { description, load } = entry;
  const { hasProcessor, dearest } = context;
  const measured = request.live
    ? { service: streamMs(entry, context.memory), queue: 0 }
    : measuredCost(entry, request.class, context);
  const patient = !isRealtime(request) && (request.class === 'default' || request.class === 'batch');
  const isIdle = isProcessor(entry) && busyAt(entry, context.memory, context.now) < description.slots;
  const policy = {
    distance: request.place && description.location ? rttMs(request.place, description.location) : 0,
    device: deviceTerm(entry, context),
    light: patient && hasProcessor && !isIdle ? LIGHT_MS : 0,
    power: hasProcessor && !isProcessor(entry) && isHot(entry) ? POWER_MS : 0,
    degraded: (load.degraded ?? 0) * DEGRADED_MS,
    // An agent without a price counts as the dearest.
    price: patient && dearest > 0 ? (PRICE_MS * (slotPrice(entry) ?? dearest)) / dearest : 0,
  };
  return { ...measured, ...policy };
}

/**
 * Extra time of a realtime request on the agent's device (A9). While no accelerator has a free slot, devices
 * among them do not count: the fastest ones would get more realtime work than they can do. 0 for all once every
 * one is saturated.
 */
function deviceTerm({ description: { accelerator, device } }: Loaded, { hasFast, hasFree }: CostContext): number {
  if (accelerator === 'cpu') return hasFast ? PROCESSOR_MS : 0;
  return hasFree ? deviceMsOf(device) : 0;
}

/** Reads a device such as `h100`, `a100-80` or `a100-80-1g`: product, memory, MIG slice. */
function deviceMsOf(device = ''): number {
  const [product = '', ...parts] = device.split('-');
  return (deviceMs[product] ?? UNKNOWN_DEVICE_MS) + (sliceMs[parts.at(-1) ?? ''] ?? 0);
}

/** Returns the weight of an agent in a draw: its slots, and less of them on a slower device. */
export function drawWeight(entry: Loaded, context: CostContext): number {
  const { slots } = entry.description;
  const places = context.live ? slots * freeOfStreams(entry) : slots;
  return places * 2 ** (-deviceTerm(entry, context) / DEVICE_HALF_MS);
}

/**
 * Time of a live stream at an agent: streams last, so what was reported does not fade, and what this isolate has opened
 * there since counts at once.
 */
function streamMs({ description, load }: Loaded, memory: RouteMemory): number {
  const { agent, slots } = description;
  return (STREAM_MS * (Math.max(load.streams ?? 0, memory.get(agent)?.outstanding ?? 0) + 1)) / slots;
}

/**
 * Milliseconds until a request of class `ours` would be done there: how long one takes, more when the slots are full,
 * and the queue before it. What was observed long ago, or never, becomes `typical`.
 */
function measuredCost(entry: Loaded, ours: RequestClass, { memory, now, typical }: CostContext) {
  const { slots, agent } = entry.description;
  const known = memory.get(agent);
  const observed = known?.ewmaMs ?? typical;
  const one = typical + (observed - typical) * weightOf(now - (known?.seen ?? now), LATENCY_AGE_MS);
  const waiting = queuedAhead(entry, ours, now);
  return {
    service: one * Math.max(1, (busyAt(entry, memory, now) + 1) / slots),
    queue: (waiting * (entry.load.serviceMs || one)) / slots,
  };
}

/**
 * Returns the typical time of a request in this fleet, ms: from observed latencies, recent ones first, else
 * from the agents' reports. An agent that was slow long ago does not define what is typical.
 */
function typicalMs(listed: readonly Listed[], memory: RouteMemory, now: number): number {
  const observed = { weight: 0, sum: 0 };
  const reported = { weight: 0, sum: 0 };
  for (const { entry } of listed) {
    const { description, load } = entry;
    const { ewmaMs, seen = 0 } = memory.get(description.agent) ?? {};
    if (ewmaMs !== undefined) {
      const weight = weightOf(now - seen, LATENCY_AGE_MS);
      observed.weight += weight;
      observed.sum += ewmaMs * weight;
    }
    if (load.serviceMs > 0) {
      reported.weight += 1;
      reported.sum += load.serviceMs;
    }
  }
  const { weight, sum } = observed.weight > 0 ? observed : reported;
  return weight > 0 ? sum / weight : 1;
}
