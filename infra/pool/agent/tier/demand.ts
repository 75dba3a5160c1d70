import { countAt } from './rate.ts';
import type { TierModel } from './state.ts';

/** Reason that a model is wanted in gpu whatever its score: a request, a canary step or switch ahead, a pin. */
export type Demand = 'waiting' | 'needed' | 'floor';

export function demandOf(model: TierModel, now: number): Demand | undefined {
  if (model.waitingSince !== undefined) return 'waiting';
  if (isNeeded(model, now)) return 'needed';
  return model.floor === 'gpu' ? 'floor' : undefined;
}

/** A model needed at a time is loaded early enough for three loads before it, and stays until ten minutes after. */
const NEEDED_LOADS = 3;
const NEEDED_MARGIN_MS = 60_000;
const NEEDED_AFTER_MS = 600_000;

function isNeeded({ neededAt, loadSeconds }: TierModel, now: number): boolean {
  if (neededAt === undefined) return false;
  const early = NEEDED_LOADS * loadSeconds.blob * 1_000 + NEEDED_MARGIN_MS;
  return now >= neededAt - early && now < neededAt + NEEDED_AFTER_MS;
}

/** A model that was requested once, as far as its rate remembers, has not shown that it comes back. */
export const isSeenOnce = ({ rate }: TierModel, now: number): boolean => countAt(rate, now) <= 1;

const URGENCY = { waiting: 0, needed: 1, floor: 2 } as const;

export interface Demanded {
  readonly model: TierModel;
  readonly rule: Demand;
}

/** Models that are demanded and not in gpu, the most urgent first, requests in their order. */
export function demanded(models: readonly TierModel[], loading: ReadonlySet<string>, now: number): Demanded[] {
  return models
    .filter(({ id, device }) => device === undefined && !loading.has(id))
    .flatMap((model): Demanded[] => {
      const rule = demandOf(model, now);
      return rule === undefined ? [] : [{ model, rule }];
    })
    .sort(
      (one, other) =>
        URGENCY[one.rule] - URGENCY[other.rule] || (one.model.waitingSince ?? 0) - (other.model.waitingSince ?? 0),
    );
}
