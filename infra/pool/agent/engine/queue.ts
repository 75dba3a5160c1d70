import { decideAdmission } from '../../../../shared/pool/admission.ts';
import { CLASS_SHARE } from '../../../../shared/pool/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import { QUEUED_UTTERANCES_MAX } from './limits.ts';

/**
 * Starts of other classes after which a waiting class has one: batch keeps a seventeenth of the engine under
 * any load.
 */
export const PASSED_STARTS_MAX = 16;

/** An utterance waiting for an engine slot. */
export interface Waiting {
  readonly id: number;
  readonly class: RequestClass;
  readonly tenant: string;
  /** Milliseconds since 1970; after it the result is worthless. */
  readonly deadline: number;
  /** Arrival, ms since 1970, from which its window counts. Absent: as late as possible. */
  readonly since?: number;
}

/** Kept sorted: the most urgent class first, inside a class the earliest deadline, then the order of arrival. */
export type Queue = readonly Waiting[];

export const emptyQueue: Queue = [];

const rank = ({ class: name }: Pick<Waiting, 'class'>) => classes.indexOf(name);
const before = (a: Waiting, b: Waiting) => rank(a) - rank(b) || a.deadline - b.deadline || a.id - b.id;

interface Enqueued {
  readonly queue: Queue;
  /** Utterances that gave way to the new one. */
  readonly displaced: readonly Waiting[];
}

/** Adds an utterance. In a full queue a less entitled one gives way (`decideAdmission`), or the new one is refused. */
export function enqueue(
  queue: Queue,
  waiting: Waiting,
  now: number,
  capacity: number = QUEUED_UTTERANCES_MAX,
): Result<Enqueued> {
  const placed = queue.length < capacity ? { queue, displaced: [] } : displace(queue, waiting, now, capacity);
  if (!placed) return no(refuse('pool_busy', undefined, 'utterance queue is full'));
  const at = placed.queue.findIndex((other) => before(waiting, other) < 0);
  return ok({ ...placed, queue: placed.queue.toSpliced(at < 0 ? placed.queue.length : at, 0, waiting) });
}

function displace(queue: Queue, waiting: Waiting, now: number, total: number): Enqueued | undefined {
  const holdings = queue.toSorted((a, b) => a.id - b.id).map((one) => ({ ...one, size: 1, waiting: true }));
  const capacity = { total, reserved: Math.floor(total * CLASS_SHARE), lends: true };
  const admission = decideAdmission(holdings, { ...waiting, size: 1 }, capacity, now);
  if (!admission.admitted) return undefined;
  const ids = new Set(admission.displaced.map(({ id }) => id));
  return { queue: queue.filter(({ id }) => !ids.has(id)), displaced: queue.filter(({ id }) => ids.has(id)) };
}

/** Starts so far, as far as the next ones depend on them. */
export interface Turns {
  readonly started: number;
  /** Starts of other classes since a class with waiting utterances had one. */
  readonly passed: Readonly<Record<RequestClass, number>>;
  /** Number of the last start of a tenant in a class; the oldest first. */
  readonly last: ReadonlyMap<string, number>;
}

export const noTurns: Turns = {
  started: 0,
  passed: { realtime: 0, interactive: 0, default: 0, batch: 0 },
  last: new Map(),
};

export interface Draw {
  readonly queue: Queue;
  readonly turns: Turns;
  /** Utterances that start now, in this order. */
  readonly start: readonly Waiting[];
  /** Utterances that waited beyond their deadline and are given up. */
  readonly late: readonly Waiting[];
}

/**
 * Chooses what starts with `free` engine slots at `now`: the most urgent class (A2), in it the tenant that has waited
 * longest since its last start, of that one the earliest deadline. A class that was passed over `PASSED_STARTS_MAX`
 * times is next, so that none starves. Late work never takes a slot.
 */
export function draw(queue: Queue, turns: Turns, free: number, now: number): Draw {
  const late = queue.filter(({ deadline }) => deadline <= now);
  let left = late.length > 0 ? queue.filter(({ deadline }) => deadline > now) : queue;
  let after = turns;
  const start: Waiting[] = [];
  while (start.length < free && left.length > 0) {
    const next = pick(left, after);
    start.push(next);
    after = countStart(left, next, after);
    left = left.filter((one) => one !== next);
  }
  return { queue: left, turns: after, start, late };
}

const turnOf = ({ class: name, tenant }: Waiting): string => `${name} ${tenant}`;

function pick(queue: Queue, { passed, last }: Turns): Waiting {
  const overdue = queue.find(({ class: name }) => passed[name] >= PASSED_STARTS_MAX);
  const [first] = queue;
  let chosen = overdue ?? (first as Waiting);
  const name = chosen.class;
  for (const one of queue) {
    if (one.class === name && (last.get(turnOf(one)) ?? 0) < (last.get(turnOf(chosen)) ?? 0)) chosen = one;
  }
  return chosen;
}

function countStart(queue: Queue, next: Waiting, turns: Turns): Turns {
  const waiting = new Set(queue.map(({ class: name }) => name));
  const passed = { ...turns.passed };
  for (const name of classes) passed[name] = waiting.has(name) && name !== next.class ? passed[name] + 1 : 0;
  const started = turns.started + 1;
  const last = new Map(turns.last);
  last.delete(turnOf(next));
  last.set(turnOf(next), started);
  const [oldest] = last.keys();
  if (last.size > QUEUED_UTTERANCES_MAX && oldest !== undefined) last.delete(oldest);
  return { started, passed, last };
}

/**
 * Counts the waiting utterances that start before a new one: all of more urgent classes, and in its class as many
 * of each tenant as its own has with it, since tenants take turns.
 */
export function countAhead(queue: Queue, next: Pick<Waiting, 'class' | 'tenant'>): number {
  const byTenant = new Map<string, number>();
  let ahead = 0;
  for (const one of queue) {
    if (rank(one) < rank(next)) ahead++;
    else if (one.class === next.class) byTenant.set(one.tenant, (byTenant.get(one.tenant) ?? 0) + 1);
  }
  const own = (byTenant.get(next.tenant) ?? 0) + 1;
  for (const [tenant, count] of byTenant) ahead += tenant === next.tenant ? count : Math.min(count, own);
  return ahead;
}

/** Takes out an utterance whose request has ended. */
export const withdraw = (queue: Queue, id: number): Queue => queue.filter((waiting) => waiting.id !== id);

export function countByClass(queue: Queue): Record<RequestClass, number> {
  const counts = { realtime: 0, interactive: 0, default: 0, batch: 0 };
  for (const { class: name } of queue) counts[name]++;
  return counts;
}
