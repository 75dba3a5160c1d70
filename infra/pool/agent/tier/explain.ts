import { RESIDENCY_CHARACTERS, type Residency } from '../../../../shared/pool/residency.ts';
import { demandOf } from './demand.ts';
import { Weigher } from './score.ts';
import { type Context, findRoom, type Room, spaceOf } from './space.ts';
import type { Tier, TierModel, TierState } from './state.ts';

/** Returns the fastest tier that has the files of a model. */
export const fileTierOf = ({ inRam, inSsd }: Pick<TierModel, 'inRam' | 'inSsd'>): Exclude<Tier, 'gpu'> =>
  inRam ? 'ram' : inSsd ? 'ssd' : 'blob';

/** Returns the standing of each model at the device, with the numbers of the decision, by id. */
export function explain(state: TierState, now: number): Map<string, Residency> {
  const committed = new Set(state.devices.flatMap((device) => device.loading ?? []));
  const context = { state, now, weigher: new Weigher(state, now), committed };
  return new Map(state.models.map((model) => [model.id, residencyOf(context, model)]));
}

/** Two digits: a rate decays all the time, and a change is sent to the registry. */
const rounded = (value: number): number => Number(value.toPrecision(2));

function residencyOf(context: Context, model: TierModel): Residency {
  const { score, predicted, saved, bytes } = context.weigher.weigh(model);
  return {
    ...{ score: rounded(score), rate: rounded(predicted), saves: rounded(saved), bytes: Math.round(bytes) },
    leases: model.leases,
    ...(model.floor !== undefined && { floor: model.floor }),
    why: whyOf(context, model).slice(0, RESIDENCY_CHARACTERS),
  };
}

/** Reasons of models that are wanted whatever their score. */
const DEMANDS = {
  waiting: 'requests wait for it',
  needed: 'the release names it as canary or grey',
  floor: 'pinned: all stable revisions fit',
} as const;

/** Returns the reason that a model is on a device, or is not. */
function whyOf(context: Context, model: TierModel): string {
  const { state, weigher } = context;
  const demand = demandOf(model);
  if (model.device !== undefined) {
    if (demand) return DEMANDS[demand];
    return model.leases > 0 ? 'in use' : 'nothing worth more needs its memory';
  }
  const [device] = state.devices;
  if (device?.loading === model.id) return 'it is being loaded';
  if (state.copying?.model === model.id) return `it is being copied to ${state.copying.tier}`;
  const isExpected = weigher.predicted(model) * state.settings.horizonMs >= 1_000;
  const kept = model.floor === 'ram' ? 'roll-back target, not below ram; ' : '';
  if (!demand && !isExpected) return `${kept}no request is expected soon`;
  const room = findRoom(context, spaceOf(state, 'gpu', device?.id), model, demand ?? 'score');
  const wanted = demand ? `${DEMANDS[demand]}; ` : kept;
  return wanted + obstacleOf(room, model, device?.loading);
}

function obstacleOf({ verdict, victims, missing, evictable }: Room, model: TierModel, loading?: string): string {
  if (verdict === 'no-room') return `${megabytes(missing)} are missing, ${megabytes(evictable)} may be evicted`;
  if (verdict === 'score') return `it is worth less than ${victims.map(({ id }) => nameOf(id)).join(', ')}`;
  if (!model.inSsd) return 'its files are fetched first';
  return loading === undefined ? 'it is loaded next' : `the load of ${nameOf(loading)} comes first`;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** Returns the name in an id of name and revision. */
const nameOf = (id: string): string => id.split(' ')[0] ?? id;
