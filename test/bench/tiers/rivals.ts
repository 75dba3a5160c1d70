// Policies to compare with: a miss loads its model, and the least in their order goes.
import type { Move } from '../../../infra/pool/agent/tier/decide.ts';
import type { TierModel, TierState } from '../../../infra/pool/agent/tier/state.ts';
import type { Policy } from './simulate.ts';
import { START_MS } from './simulate.ts';
import type { Trace } from './trace.ts';

/** Loads models in the order of their requests; drops residents with the lowest rank. */
function demandOnly(state: TierState, rank: (model: TierModel) => number, onDrop?: (model: TierModel) => void): Move[] {
  const device = state.devices[0]!;
  if (device.loading !== undefined) return [];
  const waiting = state.models
    .filter(({ waitingSince, device: on }) => waitingSince !== undefined && on === undefined)
    .sort((one, other) => one.waitingSince! - other.waitingSince!);
  for (const model of waiting) {
    const residents = state.models.filter(({ device: on }) => on !== undefined);
    let free = device.bytes - residents.reduce((sum, { gpuBytes }) => sum + gpuBytes, 0);
    const victims: TierModel[] = [];
    for (const one of residents.filter(({ leases }) => leases === 0).sort((a, b) => rank(a) - rank(b))) {
      if (free >= model.gpuBytes) break;
      victims.push(one);
      free += one.gpuBytes;
    }
    if (free < model.gpuBytes) continue;
    for (const one of victims) onDrop?.(one);
    const on = { tier: 'gpu', device: device.id } as const;
    return [
      ...victims.map((one): Move => ({ act: 'drop', model: one.id, rule: 'replaced', ...on })),
      { act: 'load', model: model.id, rule: 'waiting', ...on },
    ];
  }
  return [];
}

export function createLru(): Policy {
  const last = new Map<string, number>();
  return {
    name: 'LRU',
    request: ({ id }, now) => last.set(id, now),
    decide: (state) => demandOnly(state, ({ id }) => last.get(id) ?? 0),
  };
}

/** Least frequently used, counts halved every 5,000 requests. */
export function createLfu(): Policy {
  const { counts, add } = countAging();
  return {
    name: 'LFU, aged',
    request: ({ id }) => add(id),
    decide: (state) => demandOnly(state, ({ id }) => counts.get(id) ?? 0),
  };
}

/** Greedy dual size frequency (Cherkasova, 1998): inflation + count × cost ÷ size. */
export function createGdsf(): Policy {
  const { counts, add } = countAging();
  const rank = new Map<string, number>();
  let inflation = 0;
  return {
    name: 'GDSF',
    request({ id, loadSeconds, gpuBytes, inRam }) {
      add(id);
      const cost = loadSeconds[inRam ? 'ram' : 'ssd'];
      rank.set(id, inflation + (counts.get(id)! * cost * 1e9) / gpuBytes);
    },
    decide: (state) =>
      demandOnly(
        state,
        ({ id }) => rank.get(id) ?? 0,
        ({ id }) => {
          inflation = Math.max(inflation, rank.get(id) ?? 0);
        },
      ),
  };
}

/** Knows the trace: drops what costs least per byte until its next request. It loads on demand only, as the others do. */
export function createOracle(trace: Trace): Policy {
  const next = new Map<string, number[]>(trace.models.map(({ id }) => [id, []]));
  for (const { at, model } of trace.requests) next.get(trace.models[model]!.id)!.push(START_MS + at);
  for (const times of next.values()) times.reverse();
  const nextAfter = (id: string, now: number) => {
    const times = next.get(id)!;
    while (times.length > 0 && times.at(-1)! <= now) times.pop();
    return times.at(-1) ?? Number.POSITIVE_INFINITY;
  };
  return {
    name: 'oracle on demand',
    decide: (state, now) =>
      demandOnly(
        state,
        ({ id, gpuBytes, loadSeconds, inRam }) =>
          loadSeconds[inRam ? 'ram' : 'ssd'] / gpuBytes / (nextAfter(id, now) - now),
      ),
  };
}

function countAging() {
  const counts = new Map<string, number>();
  let requests = 0;
  const add = (id: string) => {
    counts.set(id, (counts.get(id) ?? 0) + 1);
    requests += 1;
    if (requests % 5_000 === 0) for (const [name, count] of counts) counts.set(name, count / 2);
  };
  return { counts, add };
}
