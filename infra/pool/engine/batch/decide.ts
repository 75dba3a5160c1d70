import { no, ok, type Result } from '../../../../shared/result.ts';
import type { BatchPolicy } from './policy.ts';

/** One waiting request, as far as the decision needs to know it. Times are microseconds of one monotonic clock. */
export interface Waiting {
  /** Order of arrival. */
  readonly turn: number;
  readonly level: number;
  /** Items of the batch it brings. */
  readonly size: number;
  readonly enqueuedAt: number;
  /** 0: never. */
  readonly expiresAt: number;
  /** Requests can share a batch only when this is equal. */
  readonly shape: string;
}

export interface Decision<W extends Waiting> {
  /** Leave the queue as rejected. */
  readonly expired: readonly W[];
  /** Leave the queue as one batch; empty when nothing may go yet. */
  readonly send: readonly W[];
  /** When to ask again if nothing arrives before; undefined when only an arrival can change anything. */
  readonly askAt: number | undefined;
}

/** Where a new request stands, or why it may not queue. `priority` and `timeoutUs` are the client's wishes, 0 for none. */
export function admit(
  queue: readonly Waiting[],
  policy: BatchPolicy,
  wish: { priority: number; timeoutUs: number },
  now: number,
): Result<{ level: number; expiresAt: number }, 'full'> {
  const level = wish.priority === 0 || wish.priority > policy.levels ? policy.defaultLevel : wish.priority;
  const { maxQueued, timeoutUs: usual, mayShorten } = policy.policyOf(level);
  const queued = queue.reduce((count, waiting) => (waiting.level === level ? count + 1 : count), 0);
  if (queued >= maxQueued) return no('full');
  const timeoutUs = mayShorten && wish.timeoutUs > 0 && wish.timeoutUs < usual ? wish.timeoutUs : usual;
  return ok({ level, expiresAt: timeoutUs === 0 ? 0 : now + timeoutUs });
}

const isLate = (waiting: Waiting, now: number): boolean => waiting.expiresAt !== 0 && now > waiting.expiresAt;

/** Lower levels first; inside a level those that ran late under DELAY come last; then in order of arrival. */
function inOrder<W extends Waiting>(queue: readonly W[], now: number): W[] {
  return [...queue].sort(
    (a, b) => a.level - b.level || Number(isLate(a, now)) - Number(isLate(b, now)) || a.turn - b.turn,
  );
}

interface Walk {
  /** Requests and items of the batch that the queue could give now. */
  readonly count: number;
  readonly size: number;
  /** Requests that make up the best preferred size reached; 0: none. */
  readonly best: number;
  /** Whether the batch cannot grow any more. */
  readonly closed: boolean;
}

/** Triton's walk along the queue (dynamic_batch_scheduler.cc): remember preferred sizes, stop where a batch must end. */
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
 * What to do with the queue now. `free` says whether an instance could take a batch; while none can, a batch may still
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
  if (!free || live.length === 0) return { expired, send: [], askAt: earliest(deadlines) };

  const { count, size, best, closed } = walk(live, policy);
  const pending = live.slice(0, count);
  const oldest = Math.min(...pending.map((waiting) => waiting.enqueuedAt));
  const overdue = policy.delayUs > 0 && now - oldest >= policy.delayUs;
  const send = (requests: number): Decision<W> => ({ expired, send: live.slice(0, requests), askAt: undefined });
  if (best > 0 && !overdue) return send(best);
  if (closed || size >= (policy.preferred.at(-1) ?? 0) || overdue || policy.delayUs === 0) return send(count);
  return { expired, send: [], askAt: earliest([oldest + policy.delayUs, ...deadlines]) };
}
