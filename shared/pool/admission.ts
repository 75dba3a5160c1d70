import { classes, type RequestClass } from '../tenant/claims.ts';

/** The part of a bounded resource (slots, queue entries, buffered bytes) that one request takes. */
export interface Claim {
  readonly class: RequestClass;
  readonly tenant: string;
  readonly size: number;
}

export interface Holding extends Claim {
  /** Work on it has not begun: it can be refused for a more entitled claim. */
  readonly waiting: boolean;
  /** Milliseconds since 1970; after it the holding is worthless. */
  readonly deadline: number;
}

export interface Capacity {
  readonly total: number;
  /** Each class gets at least this much. */
  readonly share: number;
  /**
   * Lets other classes use a share while its class leaves it free. Valid only if every holder can be
   * displaced: started work keeps its slot, so a lent share would return late.
   */
  readonly lends: boolean;
}

/** The claim is admitted once `displaced` are refused, or not at all. */
export type Admission<T> = { readonly admitted: true; readonly displaced: readonly T[] } | { readonly admitted: false };

const rank = (name: RequestClass): number => classes.indexOf(name);

function usageByClass(holdings: readonly Claim[]): Record<RequestClass, number> {
  const used = { realtime: 0, interactive: 0, default: 0, batch: 0 };
  for (const { class: name, size } of holdings) used[name] += size;
  return used;
}

/** Reports whether the claim fits beside `used`, and leaves the other classes their shares where those are not lent. */
export function fits(used: Readonly<Record<RequestClass, number>>, claim: Claim, capacity: Capacity): boolean {
  const { total, share, lends } = capacity;
  let taken = claim.size;
  for (const name of classes) {
    const kept = lends || name === claim.class ? 0 : share;
    taken += Math.max(used[name], kept);
  }
  return taken <= total;
}

/**
 * Decides whether a claim is admitted, and which waiting holdings give way to it. While it fits, it is admitted.
 * Otherwise these give way, in this order: holdings past their deadline; those of a class above its share, when the
 * claim's class is more urgent or below its own share, least urgent first; those of another tenant of the same class that
 * has more than the claim's tenant would have. Within a class the tenant with the most loses its newest holding.
 * `holdings` are in order of arrival.
 */
export function decideAdmission<T extends Holding>(
  holdings: readonly T[],
  claim: Claim,
  capacity: Capacity,
  now: number,
): Admission<T> {
  let left = holdings;
  const displaced: T[] = [];
  while (!fits(usageByClass(left), claim, capacity)) {
    const victim = left.find((one) => one.waiting && one.deadline <= now) ?? leastEntitled(left, claim, capacity);
    if (!victim) return { admitted: false };
    displaced.push(victim);
    left = left.filter((one) => one !== victim);
  }
  return { admitted: true, displaced };
}

function leastEntitled<T extends Holding>(left: readonly T[], claim: Claim, { share }: Capacity): T | undefined {
  const used = usageByClass(left);
  const entitled = used[claim.class] + claim.size <= share;
  for (const name of classes.toReversed()) {
    if (name === claim.class || (!entitled && rank(name) < rank(claim.class))) continue;
    const victim = newestOfLargest(left, name, (_, size) => used[name] - size >= share);
    if (victim) return victim;
  }
  const own = left.reduce((sum, one) => sum + (isOf(one, claim) ? one.size : 0), claim.size);
  return newestOfLargest(left, claim.class, (tenant, size, held) => tenant !== claim.tenant && held - size >= own);
}

const isOf = (one: Claim, other: Claim): boolean => one.class === other.class && one.tenant === other.tenant;

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
