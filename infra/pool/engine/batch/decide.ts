import { no, ok, type Result } from '../../../../shared/result.ts';
import type { BatchPolicy } from './policy.ts';

/** The facts of a waiting request that the decision needs. Times are microseconds of one monotonic clock. */
export interface Waiting {
  /** Order of arrival. */
  readonly turn: number;
  readonly level: number;
  /** Items that it adds to a batch. */
  readonly size: number;
  readonly enqueuedAt: number;
  /** 0: never. */
  readonly expiresAt: number;
  /** Requests with equal shapes may share a batch. */
  readonly shape: string;
}

export interface Decision<W extends Waiting> {
  /** Leave the queue as rejected. */
  readonly expired: readonly W[];
  /** Leave the queue as one batch; empty when none may go yet. */
  readonly send: readonly W[];
  /** Time of the next decision if nothing arrives before; undefined when only an arrival can change it. */
  readonly wakeAt: number | undefined;
}

/**
 * Returns level and expiry of a new request, or `full`. `priority` and `timeoutUs` are the client's values, 0
 * for none.
 */
export function admit(
  queue: readonly Waiting[],
  policy: BatchPolicy,
  requested: { priority: number; timeoutUs: number },
  now: number,
): Result<{ level: number; expiresAt: number }, 'full'> {
  const level =
    requested.priority === 0 || requested.priority > policy.levels ? policy.defaultLevel : requested.priority;
  const { maxQueued, timeoutUs: usual, mayShorten } = policy.policyOf(level);
  const queued = queue.reduce((count, waiting) => (waiting.level === level ? count + 1 : count), 0);
  if (queued >= maxQueued) return no('full');
  const timeoutUs = mayShorten && requested.timeoutUs > 0 && requested.timeoutUs < usual ? requested.timeoutUs : usual;
  return ok({ level, expiresAt: timeoutUs === 0 ? 0 : now + timeoutUs });
}

const isLate = (waiting: Waiting, now: number): boolean => waiting.expiresAt !== 0 && now > waiting.expiresAt;

/**
 * Orders the queue by level; within a level requests past their time under DELAY come last; then by arrival.
 */
function inOrder<W extends Waiting>(queue: readonly W[], now: number): W[] {
  return [...queue].sort(
    (a, b) => a.level - b.level || Number(isLate(a, now)) - Number(isLate(b, now)) || a.turn - b.turn,
  );
}

interface Walk {
  /** Requests and items of the batch that the queue could form now. */
  readonly count: number;
  readonly size: number;
  /** Requests of the best preferred size reached; 0: none. */
  readonly best: number;
  /** The batch cannot grow any more. */
  readonly closed: boolean;
}

/**
 * Walks along the queue as Triton does (dynamic_batch_scheduler.cc): notes preferred sizes, stops where a
 * batch must end.
 */
function walk(queue: readonly Waiting[], policy: BatchPolicy): Walk {
  const largest = policy.preferred.at(-1) ?? 0;
  let size = 0;
  let best = 0;
  for (const [count, waiting] of queue.entries()) {
    if (count > 0) {
      const grown = size + waiting.size;
      if (grown > largest && best === 0) best = count;
      if (grown > policy.maxBatch || waiting.shape !== queue[0]?.shape) return { count, size, best, closed: true };
    }
    size += waiting.size;
    if (policy.preferred.includes(size)) best = count + 1;
  }
  return { count: queue.length, size, best, closed: false };
}

const earliest = (times: readonly number[]): number | undefined => (times.length > 0 ? Math.min(...times) : undefined);

/**
 * Decides the next step of the queue. `free`: an instance can take a batch. While none can, a batch may still
 * grow, and only expiry needs attention.
 */
export function decide<W extends Waiting>(
  queue: readonly W[],
  policy: BatchPolicy,
  free: boolean,
  now: number,
): Decision<W> {
  const rejects = (waiting: W) => policy.policyOf(waiting.level).onTimeout === 'REJECT';
  const expired = queue.filter((waiting) => isLate(waiting, now) && rejects(waiting));
  const live = inOrder(
    queue.filter((waiting) => !expired.includes(waiting)),
    now,
  );
  // A request expires strictly after its time, hence the extra microsecond.
  const deadlines = live
    .filter(({ expiresAt }) => expiresAt !== 0 && expiresAt >= now)
    .map((waiting) => waiting.expiresAt + 1);
  if (!free || live.length === 0) return { expired, send: [], wakeAt: earliest(deadlines) };

  const { count, size, best, closed } = walk(live, policy);
  const pending = live.slice(0, count);
  const oldest = Math.min(...pending.map((waiting) => waiting.enqueuedAt));
  const overdue = policy.delayUs > 0 && now - oldest >= policy.delayUs;
  const send = (requests: number): Decision<W> => ({ expired, send: live.slice(0, requests), wakeAt: undefined });
  if (best > 0 && !overdue) return send(best);
  if (closed || size >= (policy.preferred.at(-1) ?? 0) || overdue || policy.delayUs === 0) return send(count);
  return { expired, send: [], wakeAt: earliest([oldest + policy.delayUs, ...deadlines]) };
}
