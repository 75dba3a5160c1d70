// Replays a trace against a policy: one device, one load at a time, requests wait for the load of their model. Every policy
// gets the same bytes in each tier and the same loader, and may not drop a model during an inference.
import type { Move } from '../../../infra/pool/agent/tier/decide.ts';
import { addToProfile, advanceProfile, startProfile } from '../../../infra/pool/agent/tier/profile.ts';
import { addRequest, startRate } from '../../../infra/pool/agent/tier/rate.ts';
import {
  RATE_HALF_LIFE_MS,
  SLOW_HALF_LIFE_MS,
  type TierModel,
  type TierSettings,
  type TierState,
  tierSettings,
} from '../../../infra/pool/agent/tier/state.ts';
import type { Trace } from './trace.ts';

export interface Machine {
  readonly gpuBytes: number;
  readonly ramBytes: number;
}

export interface Policy {
  readonly name: string;
  /** Observes a request, before it is served. */
  request?(model: TierModel, now: number): void;
  decide(state: TierState, now: number): Move[];
  /** The policy manages ram; otherwise it is a page cache: the least recently loaded goes. */
  readonly managesRam?: boolean;
  readonly settings?: TierSettings;
}

export interface Outcome {
  /** Requests after the first day; the other figures are of them. */
  readonly requests: number;
  readonly waited: number;
  readonly stallSeconds: number;
  readonly p99: number;
  readonly loads: number;
  readonly gigabytes: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const INFERENCE_MS = 500;
const TICK_MS = 60_000;
const DAY_MS = 86_400_000;
const FIXED_SECONDS = 0.12;

export const loadSecondsOf = (bytes: number) => ({
  ram: FIXED_SECONDS + bytes / 12e9,
  ssd: FIXED_SECONDS + bytes / 1.2e9,
  blob: FIXED_SECONDS + bytes / 0.15e9,
});

/** 2026-01-05, a midnight UTC. */
export const START_MS = 1_767_571_200_000;

export function simulate(trace: Trace, machine: Machine, policy: Policy): Outcome {
  const models = trace.models.map(
    ({ id, language, bytes }): Mutable<TierModel> => ({
      id,
      language,
      gpuBytes: bytes,
      fileBytes: bytes,
      loadSeconds: loadSecondsOf(bytes),
      rate: startRate(RATE_HALF_LIFE_MS, START_MS),
      slowRate: startRate(SLOW_HALF_LIFE_MS, START_MS),
      leases: 0,
      inRam: false,
      inSsd: true,
    }),
  );
  const byId = new Map(models.map((model) => [model.id, model]));
  const device: { id: string; bytes: number; loading?: string } = { id: 'gpu0', bytes: machine.gpuBytes };
  const profiles = new Map(
    [...new Set(models.map(({ language }) => language))].map((name) => [name, startProfile(START_MS - 1)]),
  );
  const state: Mutable<TierState> = {
    models,
    devices: [device],
    ramBytes: machine.ramBytes,
    ssdBytes: Number.POSITIVE_INFINITY,
    profiles,
    settings: policy.settings ?? tierSettings,
  };
  const stalls: number[] = [];
  let [loads, gigabytes, counted] = [0, 0, 0];
  const waiting = new Map<string, number[]>();
  const leaseEnds: { at: number; model: Mutable<TierModel> }[] = [];
  let loadEnd = Number.POSITIVE_INFINITY;
  let loadingModel: Mutable<TierModel> | undefined;
  let fillEnd = Number.POSITIVE_INFINITY;
  let copyingModel: Mutable<TierModel> | undefined;
  let pageCache: Mutable<TierModel>[] = [];
  const isCounted = (at: number) => at >= START_MS + DAY_MS;

  const lease = (model: Mutable<TierModel>, now: number, count = 1) => {
    model.leases += count;
    for (let n = 0; n < count; n += 1) leaseEnds.push({ at: now + INFERENCE_MS, model });
  };
  const cache = (model: Mutable<TierModel>) => {
    if (policy.managesRam) return;
    pageCache = [...pageCache.filter((one) => one !== model), model];
    model.inRam = true;
    let used = pageCache.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
    while (used > machine.ramBytes) {
      const out = pageCache.shift()!;
      out.inRam = false;
      used -= out.fileBytes;
    }
  };
  const act = (now: number) => {
    for (const move of policy.decide(state, now)) {
      const model = byId.get(move.model)!;
      if (move.act === 'drop') {
        if (move.tier === 'gpu') {
          if (model.leases > 0 || model.device === undefined)
            throw new Error(`${policy.name} drops ${model.id} in use`);
          delete model.device;
          delete model.deviceSince;
        } else model.inRam = false;
      } else if (move.tier === 'gpu') {
        const from = model.inRam ? 'ram' : 'ssd';
        const begin = from === 'ssd' && copyingModel ? fillEnd : now;
        loadEnd = begin + model.loadSeconds[from] * 1_000;
        loadingModel = model;
        device.loading = model.id;
        const used = models.reduce((sum, one) => sum + (one.device === undefined ? 0 : one.gpuBytes), model.gpuBytes);
        if (used > machine.gpuBytes) throw new Error(`${policy.name} overfills the device`);
        if (isCounted(now)) [loads, gigabytes] = [loads + 1, gigabytes + model.gpuBytes / 1e9];
        cache(model);
      } else {
        const used = models.reduce((sum, one) => sum + (one.inRam ? one.fileBytes : 0), model.fileBytes);
        // A load that reads the model anyway leaves its copy; otherwise the copy reads it, and loads wait for its end.
        if (loadingModel === model) model.inRam = true;
        else {
          copyingModel = model;
          state.copying = { model: model.id, tier: 'ram' };
          fillEnd = Math.max(now, Number.isFinite(loadEnd) ? loadEnd : now) + (model.fileBytes / 1.2e9) * 1_000;
        }
        if (used > machine.ramBytes) throw new Error(`${policy.name} overfills memory`);
      }
    }
  };
  const takeEnds = (until: number) => {
    for (;;) {
      const next = Math.min(loadEnd, fillEnd, leaseEnds[0]?.at ?? Number.POSITIVE_INFINITY);
      if (next > until) return;
      if (next === loadEnd) {
        const model = loadingModel!;
        loadEnd = Number.POSITIVE_INFINITY;
        loadingModel = undefined;
        delete device.loading;
        model.device = device.id;
        model.deviceSince = next;
        const arrivals = waiting.get(model.id) ?? [];
        waiting.delete(model.id);
        delete model.waitingSince;
        for (const at of arrivals) if (isCounted(at)) stalls.push((next - at) / 1_000);
        lease(model, next, arrivals.length);
        act(next);
      } else if (next === fillEnd) {
        fillEnd = Number.POSITIVE_INFINITY;
        copyingModel!.inRam = true;
        copyingModel = undefined;
        delete state.copying;
        act(next);
      } else {
        leaseEnds.shift()!.model.leases -= 1;
        if (waiting.size > 0) act(next);
      }
    }
  };
  let tick = START_MS;
  for (const { at, model: index } of trace.requests) {
    const now = START_MS + at;
    for (; tick <= now; tick += TICK_MS) {
      takeEnds(tick);
      for (const [name, profile] of profiles) profiles.set(name, advanceProfile(profile, tick));
      act(tick);
    }
    takeEnds(now);
    const model = models[index]!;
    model.rate = addRequest(model.rate, now);
    model.slowRate = addRequest(model.slowRate, now);
    profiles.set(model.language, addToProfile(profiles.get(model.language)!, now));
    policy.request?.(model, now);
    if (isCounted(now)) counted += 1;
    if (model.device !== undefined) {
      lease(model, now);
      continue;
    }
    waiting.set(model.id, [...(waiting.get(model.id) ?? []), now]);
    if (loadingModel === model) continue;
    model.waitingSince ??= now;
    act(now);
  }
  takeEnds(tick + 3_600_000);
  if (waiting.size > 0) throw new Error(`${policy.name} left requests waiting`);
  stalls.sort((one, other) => one - other);
  const rank = Math.floor(counted * 0.99) - (counted - stalls.length);
  return {
    requests: counted,
    waited: stalls.length,
    stallSeconds: stalls.reduce((sum, stall) => sum + stall, 0),
    p99: rank < 0 ? 0 : (stalls[rank] ?? 0),
    loads,
    gigabytes,
  };
}
