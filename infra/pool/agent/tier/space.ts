// Room in a bounded tier: what a model would replace there, and whether it may.
import { type Demand, demandOf, isSeenOnce } from './demand.ts';
import { bytesIn, type Weigher } from './score.ts';
import type { Held, TierModel, TierState } from './state.ts';

/** Bounded space of a tier: a device, ram or ssd. */
export interface Space {
  readonly tier: Held;
  readonly device?: string;
  readonly bytes: number;
  /** Models in it, and the one on its way there. */
  readonly occupants: readonly TierModel[];
}

export interface Context {
  readonly state: TierState;
  readonly now: number;
  readonly weigher: Weigher;
  /** Models on their way to a device, and those that the list of moves names already. */
  readonly committed: ReadonlySet<string>;
}

/** Room for a model, with the numbers that decided. */
export interface Room {
  /** `no-room`: what may be dropped does not suffice. `score`: it is worth more than the model. */
  readonly verdict: 'fits' | 'replaces' | 'no-room' | 'score';
  readonly victims: readonly TierModel[];
  /** Bytes to free, and bytes that may be dropped. */
  readonly missing: number;
  readonly evictable: number;
}

export function spaceOf({ models, devices, ramBytes, ssdBytes, copying }: TierState, tier: Held, id?: string): Space {
  if (tier === 'gpu') {
    const found = devices.find((device) => device.id === id);
    const occupants = models.filter((model) => model.device === id || model.id === found?.loading);
    return { tier, bytes: found?.bytes ?? 0, occupants, ...(id !== undefined && { device: id }) };
  }
  const arriving = copying?.tier === tier ? copying.model : undefined;
  const occupants = models.filter((model) => (tier === 'ram' ? model.inRam : model.inSsd) || model.id === arriving);
  return { tier, bytes: tier === 'ram' ? ramBytes : ssdBytes, occupants };
}

/** Finds the least valuable occupants that make room for a model. */
export function findRoom(context: Context, space: Space, model: TierModel, rule: Demand | 'score'): Room {
  const { tier } = space;
  const { weigher, state, now } = context;
  const size = (one: TierModel) => bytesIn(one, tier);
  const missing = total(space.occupants, size) + size(model) - space.bytes;
  const none = { victims: [], missing: Math.max(0, missing), evictable: 0 };
  if (missing <= 0) return { verdict: 'fits', ...none };
  const all = space.occupants.filter((one) => mayDrop(context, space, one, rule));
  const seenOnce = all.filter((one) => isSeenOnce(one, now));
  const admitted = rule !== 'waiting' || tier !== 'gpu' || !isSeenOnce(model, now);
  // Admission: a model with one request replaces its like if they suffice.
  const evictable = !admitted && total(seenOnce, size) >= missing ? seenOnce : all;
  const room = { ...none, evictable: total(evictable, size) };
  if (room.evictable < missing) return { verdict: 'no-room', ...room };
  const victims = leastOf(evictable, missing, size, (one) => weigher.score(one, tier));
  const lost = total(victims, (one) => weigher.value(one, tier));
  const beaten = rule !== 'score' || weigher.value(model, tier) > lost * state.settings.hysteresis;
  return { verdict: beaten ? 'replaces' : 'score', ...room, victims };
}

type Measure = (model: TierModel) => number;

const total = (models: readonly TierModel[], measure: Measure) => models.reduce((sum, one) => sum + measure(one), 0);

/** Takes models by score until they are large enough, then spares what a large last one made unnecessary. */
function leastOf(models: readonly TierModel[], bytes: number, size: Measure, score: Measure): TierModel[] {
  const ranked = models.map((one) => ({ one, score: score(one) })).sort((first, second) => first.score - second.score);
  const victims: TierModel[] = [];
  let freed = 0;
  for (const { one } of ranked) {
    if (freed >= bytes) break;
    victims.unshift(one);
    freed += size(one);
  }
  return victims.filter((one) => {
    if (freed - size(one) < bytes) return true;
    freed -= size(one);
    return false;
  });
}

function mayDrop(context: Context, { tier }: Space, model: TierModel, rule: Demand | 'score'): boolean {
  const { state, now, committed } = context;
  if (committed.has(model.id) || state.copying?.model === model.id) return false;
  if (tier === 'ssd') return !model.inRam && model.device === undefined && !model.floor && !demandOf(model);
  // A roll-back target stays in ram or above.
  if (tier === 'ram') return model.floor !== 'ram' || model.device !== undefined;
  if (model.leases > 0 || demandOf(model) || (model.floor === 'ram' && !model.inRam)) return false;
  return rule !== 'score' || now - (model.deviceSince ?? 0) >= state.settings.minResidencyMs;
}
