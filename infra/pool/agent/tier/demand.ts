import { countAt } from './rate.ts';
import type { TierModel } from './state.ts';

/** Reason that a model is wanted in gpu whatever its score: a request, a canary or grey release, a pin. */
export type Demand = 'waiting' | 'needed' | 'floor';

export function demandOf({ waitingSince, needed, floor }: TierModel): Demand | undefined {
  if (waitingSince !== undefined) return 'waiting';
  if (needed) return 'needed';
  return floor === 'gpu' ? 'floor' : undefined;
}

/** A model that was requested once, as far as its rate remembers, has not shown that it comes back. */
export const isSeenOnce = ({ rate }: TierModel, now: number): boolean => countAt(rate, now) <= 1;

const URGENCY = { waiting: 0, needed: 1, floor: 2 } as const;

export interface Demanded {
  readonly model: TierModel;
  readonly rule: Demand;
}

/** Models that are demanded and not in gpu, the most urgent first, requests in their order. */
export function demanded(models: readonly TierModel[], loading: ReadonlySet<string>): Demanded[] {
  return models
    .filter(({ id, device }) => device === undefined && !loading.has(id))
    .flatMap((model): Demanded[] => {
      const rule = demandOf(model);
      return rule === undefined ? [] : [{ model, rule }];
    })
    .sort(
      (one, other) =>
        URGENCY[one.rule] - URGENCY[other.rule] || (one.model.waitingSince ?? 0) - (other.model.waitingSince ?? 0),
    );
}
