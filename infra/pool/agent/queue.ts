import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';

/** An utterance waiting for an engine slot. */
export interface Waiting {
  readonly id: number;
  readonly class: RequestClass;
  /** Milliseconds since 1970 after which nobody wants the result. */
  readonly deadline: number;
}

/** Kept sorted: the most urgent class first, inside a class the earliest deadline, then the order of arrival. */
export type Queue = readonly Waiting[];

export const emptyQueue: Queue = [];

const rank = ({ class: name }: Waiting) => classes.indexOf(name);
const before = (a: Waiting, b: Waiting) => rank(a) - rank(b) || a.deadline - b.deadline || a.id - b.id;

/** Adds an utterance (A2: an urgent one overtakes), or refuses it when the queue is full. */
export function enqueue(
  queue: Queue,
  waiting: Waiting,
  capacity: number = limits.queuedUtterances.value,
): Result<Queue> {
  if (queue.length >= capacity) return no(refuse('pool_busy', undefined, 'utterance queue is full'));
  const at = queue.findIndex((other) => before(waiting, other) < 0);
  return ok(queue.toSpliced(at < 0 ? queue.length : at, 0, waiting));
}

export interface Draw {
  readonly queue: Queue;
  /** What may start now, most urgent first. */
  readonly start: readonly Waiting[];
  /** What waited beyond its deadline and is given up. */
  readonly late: readonly Waiting[];
}

/** What to start with `free` engine slots at `now`. Work that is late never takes a slot. */
export function draw(queue: Queue, free: number, now: number): Draw {
  const late = queue.filter(({ deadline }) => deadline <= now);
  const alive = late.length > 0 ? queue.filter(({ deadline }) => deadline > now) : queue;
  return { queue: alive.slice(free), start: alive.slice(0, free), late };
}

/** Takes out an utterance whose request is gone. */
export const withdraw = (queue: Queue, id: number): Queue => queue.filter((waiting) => waiting.id !== id);

export function countByClass(queue: Queue): Record<RequestClass, number> {
  const counts = { realtime: 0, interactive: 0, default: 0, batch: 0 };
  for (const { class: name } of queue) counts[name]++;
  return counts;
}
