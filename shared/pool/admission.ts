import { classes, type RequestClass } from '../tenant/claims.ts';

/** The part of a bounded resource (slots, queue entries, buffered bytes) that one request takes. */
export interface Demand {
  readonly class: RequestClass;
  readonly tenant: string;
  readonly size: number;
}

export interface Holding extends Demand {
  /** Work on it has not begun: it can be refused for a more entitled demand. */
  readonly waiting: boolean;
  /** Milliseconds since 1970; after it the holding is worthless. */
  readonly deadline: number;
}

export interface Capacity {
  readonly total: number;
  /** The part of `total` that each class gets at least. */
  readonly reserved: number;
  /**
   * Lets other classes use what is reserved for a class while that leaves it free. Valid only if every holding can be
   * displaced: started work keeps its slot, so what was lent would return late.
   */
  readonly lends: boolean;
}

/** The demand is admitted once `displaced` are refused, or not at all. */
export type Admission<T> = { readonly admitted: true; readonly displaced: readonly T[] } | { readonly admitted: false };

const rank = (name: RequestClass): number => classes.indexOf(name);

function usageByClass(holdings: readonly Demand[]): Record<RequestClass, number> {
  const used = { realtime: 0, interactive: 0, default: 0, batch: 0 };
  for (const { class: name, size } of holdings) used[name] += size;
  return used;
}

/** Reports whether the demand fits beside `used`, and leaves the other classes what is reserved for them where that is not lent. */
export function fits(used: Readonly<Record<RequestClass, number>>, demand: Demand, capacity: Capacity): boolean {
  const { total, reserved, lends } = capacity;
  let taken = demand.size;
  for (const name of classes) {
    const kept = lends || name === demand.class ? 0 : reserved;
    taken += Math.max(used[name], kept);
  }
  return taken <= total;
}

/**
 * Decides whether a demand is admitted, and which waiting holdings give way to it. While it fits, it is admitted.
 * Otherwise these give way, in this order: holdings past their deadline; those of a class above its reserved part,
 * when the demand's class is more urgent or below its own reserved part, least urgent first; those of another tenant of
 * the same class that has more than the demand's tenant would have. Within a class the tenant with the most loses its newest holding.
 * `holdings` are in order of arrival.
 */
export function decideAdmission<T extends Holding>(
  holdings: readonly T[],
  demand: Demand,
  capacity: Capacity,
  now: number,
): Admission<T> {
  let left = holdings;
  const displaced: T[] = [];
  while (!fits(usageByClass(left), demand, capacity)) {
    const victim = left.find((one) => one.waiting && one.deadline <= now) ?? leastEntitled(left, demand, capacity);
    if (!victim) return { admitted: false };
    displaced.push(victim);
    left = left.filter((one) => one !== victim);
  }
  return { admitted: true, displaced };
}

function leastEntitled<T extends Holding>(left: readonly T[], demand: Demand, { reserved }: Capacity): T | undefined {
  const used = usageByClass(left);
  const entitled = used[demand.class] + demand.size <= reserved;
  for (const name of classes.toReversed()) {
    if (name === demand.class || (!entitled && rank(name) < rank(demand.class))) continue;
    const victim = newestOfLargest(left, name, (_, size) => used[name] - size >= reserved);
    if (victim) return victim;
  }
  const own = left.reduce((sum, one) => sum + (isOf(one, demand) ? one.size : 0), demand.size);
  return newestOfLargest(left, demand.class, (tenant, size, held) => tenant !== demand.tenant && held - size >= own);
}

const isOf = (one: Demand, other: Demand): boolean => one.class === other.class && one.tenant === other.tenant;

/** The newest waiting holding of the class, of the tenant that holds the most of those that `may` lose it. */
function newestOfLargest<T extends Holding>(
  left: readonly T[],
  name: RequestClass,
  may: (tenant: string, size: number, held: number) => boolean,
): T | undefined {
  const held = new Map<string, number>();
  for (const one of left) {
    if (one.class === name) held.set(one.tenant, (held.get(one.tenant) ?? 0) + one.size);
  }
  let victim: T | undefined;
  let most = 0;
  for (const one of left) {
    const size = held.get(one.tenant) ?? 0;
    if (one.class !== name || !one.waiting || size < most || !may(one.tenant, one.size, size)) continue;
    victim = one;
    most = size;
  }
  return victim;
}
