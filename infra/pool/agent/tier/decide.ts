// Decides which models an agent has in which tier (A11). Pure: a state and a time in, moves out. The agent performs a
// list in order, and decides again after each event: a request that waits, the end of a load, of a copy or of the last
// lease of a model, a minute.
import { type Demand, demanded, isSeenOnce } from './demand.ts';
import { Weigher } from './score.ts';
import { type Context, findRoom, type Space, spaceOf } from './space.ts';
import type { Held, TierModel, TierState } from './state.ts';

export interface Move {
  readonly act: 'load' | 'drop';
  readonly model: string;
  readonly tier: Held;
  /** Device of a move in gpu. */
  readonly device?: string;
  /** A demand, a higher score than what it replaces, or `replaced` by the load behind it. */
  readonly rule: Demand | 'score' | 'replaced';
  /** Model that takes the space of a dropped one. */
  readonly for?: string;
}

export function decide(state: TierState, now: number): Move[] {
  const committed = new Set(state.devices.flatMap((device) => device.loading ?? []));
  const context = { state, now, weigher: new Weigher(state, now), committed };
  const moves: Move[] = [];
  const add = (chosen: readonly Move[]) => {
    moves.push(...chosen);
    for (const { model } of chosen) committed.add(model);
  };
  for (const device of state.devices) {
    if (device.loading === undefined) add(decideDevice(context, spaceOf(state, 'gpu', device.id)));
  }
  if (state.copying === undefined) add(decideCopy(context, moves));
  return moves;
}

/** Loads one model: the most urgent demand, otherwise the best score that expects a request soon (A27). */
function decideDevice(context: Context, space: Space): Move[] {
  const { state, weigher, committed } = context;
  // A copy in progress and a load would write the same files.
  const isCopied = ({ id }: TierModel) => id === state.copying?.model;
  const wanted = demanded(state.models, committed).filter(({ model }) => model.inSsd);
  for (const { model, rule } of wanted) {
    if (isCopied(model)) continue;
    const moves = place(context, space, model, rule);
    if (moves) return moves;
  }
  // A request that waits for a lease to end is not to find the device busy with something else.
  if (wanted.some(({ rule }) => rule === 'waiting')) return [];
  const isExpected = (model: TierModel) => weigher.predicted(model) * state.settings.horizonMs >= 1_000;
  const absent = state.models.filter((model) => model.inSsd && model.device === undefined && !committed.has(model.id));
  return placeBest(
    context,
    space,
    absent.filter((model) => isExpected(model) && !isCopied(model)),
  );
}

/** Copies models to ssd and ram, one at a time: demanded ones, then those below their floor, then by score. */
function decideCopy(context: Context, moves: readonly Move[]): Move[] {
  const { state, now, committed } = context;
  const [ssd, ram] = [spaceOf(state, 'ssd'), spaceOf(state, 'ram')];
  const low = state.models.filter((model) => isBelowFloor(model, committed));
  const demands = [
    ...demanded(state.models, committed).filter(({ model }) => !model.inSsd),
    ...low.map((model) => ({ model, rule: 'floor' as const })),
  ];
  for (const { model, rule } of demands) {
    const chosen = place(context, model.inSsd ? ram : ssd, model, rule);
    if (chosen) return chosen;
  }
  // A model that leaves gpu in this list is weighed for ram when it has left.
  const leaving = new Set(moves.flatMap(({ act, model }) => (act === 'drop' ? model : [])));
  const forRam = state.models.filter(
    ({ id, inSsd, inRam }) => inSsd && !inRam && !leaving.has(id) && !committed.has(id),
  );
  const chosen = placeBest(context, ram, forRam);
  if (chosen.length > 0) return chosen;
  return placeBest(
    context,
    ssd,
    state.models.filter((model) => !model.inSsd && !isSeenOnce(model, now)),
  );
}

function isBelowFloor({ id, floor, inRam, inSsd, device }: TierModel, committed: ReadonlySet<string>): boolean {
  if (floor === undefined || floor === 'blob' || committed.has(id)) return false;
  return !inSsd || (floor === 'ram' && !inRam && device === undefined);
}

/** Candidates tried for a space: those behind them have lower scores, and fail as well unless they are smaller. */
const TRIED = 3;

function placeBest(context: Context, space: Space, candidates: readonly TierModel[]): Move[] {
  const best = candidates
    .map((model) => ({ model, score: context.weigher.score(model, space.tier) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, TRIED);
  for (const { model } of best) {
    const moves = place(context, space, model, 'score');
    if (moves) return moves;
  }
  return [];
}

/** Returns the moves that bring a model into a space, `undefined` when it does not get in now. */
function place(context: Context, space: Space, model: TierModel, rule: Demand | 'score'): Move[] | undefined {
  const { verdict, victims } = findRoom(context, space, model, rule);
  if (verdict === 'no-room' || verdict === 'score') return undefined;
  const { tier } = space;
  const on = { tier, ...(space.device !== undefined && { device: space.device }) };
  return [
    ...victims.map((one): Move => ({ act: 'drop', model: one.id, ...on, rule: 'replaced', for: model.id })),
    { act: 'load', model: model.id, ...on, rule },
  ];
}
