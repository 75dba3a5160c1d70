import { decide, type Move } from './decide.ts';
import { type Demand, demandOf, isOnTrial } from './demand.ts';
import { Scale, type Weight } from './score.ts';
import { findRoom, type Room, spaceOf } from './space.ts';
import type { Held, Tier, TierModel, TierState } from './state.ts';

/** Reasons of a model's tier, with every number that a decision about it rests on. */
export interface Explanation {
  readonly model: string;
  /** Fastest tier that has it. */
  readonly tier: Tier;
  readonly floor?: Tier;
  readonly demand?: Demand;
  /** It was requested once. */
  readonly onTrial: boolean;
  readonly leases: number;
  readonly weights: Readonly<Record<Held, Weight>>;
  /** Room for it in each space that lacks it. */
  readonly rooms: readonly RoomFor[];
  /** Moves that `decide` makes of it now. */
  readonly moves: readonly Move[];
}

export interface RoomFor extends Omit<Room, 'victims'> {
  readonly tier: Held;
  readonly device?: string;
  readonly bytes: number;
  /** Load or copy in progress there, which every other one waits for. */
  readonly busy?: string;
  /** Models that it would replace. */
  readonly victims: readonly { readonly model: string; readonly score: number }[];
}

export const tierOf = ({ device, inRam, inSsd }: TierModel): Tier =>
  device !== undefined ? 'gpu' : inRam ? 'ram' : inSsd ? 'ssd' : 'blob';

/** Explains a model, `undefined` when it is not known. */
export function explain(state: TierState, id: string, now: number): Explanation | undefined {
  const model = state.models.find((one) => one.id === id);
  if (!model) return undefined;
  const scale = new Scale(state, now);
  const demand = demandOf(model, now);
  const taken = new Set(state.devices.flatMap((device) => device.loading ?? []));
  const spaces = [
    ...(model.device === undefined ? state.devices.map((device) => spaceOf(state, 'gpu', device.id)) : []),
    ...(model.inRam ? [] : [spaceOf(state, 'ram')]),
    ...(model.inSsd ? [] : [spaceOf(state, 'ssd')]),
  ];
  const rooms = spaces.map((space): RoomFor => {
    const { tier, device, bytes } = space;
    const rule = tier === 'ram' ? 'score' : (demand ?? 'score');
    const { victims, ...room } = findRoom({ state, now, scale, taken }, space, model, rule);
    const busy = tier === 'gpu' ? state.devices.find((one) => one.id === device)?.loading : state.filling?.model;
    const replaced = victims.map((victim) => ({ model: victim.id, score: scale.score(victim, tier) }));
    return {
      tier,
      bytes,
      ...(device !== undefined && { device }),
      ...(busy !== undefined && { busy }),
      ...room,
      victims: replaced,
    };
  });
  return {
    model: id,
    tier: tierOf(model),
    ...(model.floor !== undefined && { floor: model.floor }),
    ...(demand !== undefined && { demand }),
    onTrial: isOnTrial(model, now),
    leases: model.leases,
    weights: { gpu: scale.weigh(model, 'gpu'), ram: scale.weigh(model, 'ram'), ssd: scale.weigh(model, 'ssd') },
    rooms,
    moves: decide(state, now).filter((move) => move.model === id),
  };
}
