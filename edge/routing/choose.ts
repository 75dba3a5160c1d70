import { type Cost, type CostContext, costOf, drawWeight } from './cost.ts';
import type { Candidate, RouteRequest } from './route.ts';

/** Difference below which two measured costs are equal: it is noise of the measurement. */
const COST_NOISE = 0.25;
/** Difference below which two costs are equal: then the draw decides. */
const COST_STEP_MS = 0.5;

/** A choice among candidates, with the rule that decided it. */
export interface Choice<T> {
  readonly chosen: T;
  readonly rule: string;
}

/** Rules by the term that made most of the difference. */
const rules: Readonly<Record<keyof Cost, string>> = {
  service: 'less loaded',
  queue: 'less loaded',
  distance: 'nearer',
  device: 'faster device',
  light: 'idle processor',
  power: 'spares power',
  degraded: 'not degraded',
  price: 'cheaper',
};
const terms = Object.keys(rules) as (keyof Cost)[];

/**
 * Draws two candidates by their share of slots and takes the one of less cost. Taking the cheapest of all would send
 * every isolate to the same agent, since signals are a second old.
 */
export function choose<T extends Candidate>(
  request: RouteRequest,
  candidates: readonly T[],
  context: CostContext,
  random: () => number,
): Choice<T> {
  const first = draw(candidates, context, random());
  const chosen = candidates[first] as T;
  if (candidates.length === 1) return { chosen, rule: 'the only one' };
  const other = candidates[draw(candidates, context, random(), first)] as T;
  const [one, two] = [costOf(chosen.entry, request, context), costOf(other.entry, request, context)];
  const saved = difference(two, one);
  if (Math.abs(saved) < COST_STEP_MS) return { chosen, rule: 'by slots' };
  return saved > 0 ? { chosen, rule: ruleOf(two, one) } : { chosen: other, rule: ruleOf(one, two) };
}

/** Returns the index of a candidate at a random number from 0 up to 1, in proportion to weights; never `without`. */
function draw(candidates: readonly Candidate[], context: CostContext, random: number, without = -1): number {
  let total = 0;
  for (let index = 0; index < candidates.length; index++) {
    if (index !== without) total += weightAt(candidates, index, context);
  }
  let at = random * total;
  let last = 0;
  for (let index = 0; index < candidates.length; index++) {
    if (index === without) continue;
    last = index;
    at -= weightAt(candidates, index, context);
    if (at < 0) break;
  }
  return last;
}

const weightAt = (candidates: readonly Candidate[], index: number, context: CostContext): number =>
  drawWeight((candidates[index] as Candidate).entry, context);

const measured = ({ service, queue }: Cost): number => service + queue;
const total = (cost: Cost): number => terms.reduce((sum, term) => sum + cost[term], 0);

/** Returns how much more `one` costs than `other`, ms. Measured parts within their noise are equal. */
function difference(one: Cost, other: Cost): number {
  const [mine, theirs] = [measured(one), measured(other)];
  const noise = Math.abs(mine - theirs) <= Math.max(mine, theirs) * COST_NOISE ? mine - theirs : 0;
  return total(one) - total(other) - noise;
}

/** Names the term that speaks most for the cheaper of two costs. */
function ruleOf(dearer: Cost, cheaper: Cost): string {
  const saved = (term: keyof Cost) => dearer[term] - cheaper[term];
  return rules[terms.reduce((most, term) => (saved(term) > saved(most) ? term : most))];
}
