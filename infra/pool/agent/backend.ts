import { Registry } from 'prom-client';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import type { Degrader } from './degrade/degrader.ts';
import type { Dispatcher } from './engine/dispatch.ts';
import type { Engine } from './engine/engine.ts';
import { createEngineMetrics } from './engine/metrics-page.ts';
import { openEngine } from './engine/open-engine.ts';
import { createServiceTime } from './engine/serving-time.ts';
import { createAttest } from './identity/attest.ts';
import { createKeys } from './identity/keys.ts';
import { openPoolToken } from './identity/pool-token.ts';
import { openOutbox } from './identity/record.ts';
import { openReleaseMap, type ReleaseMapStore } from './identity/release-map.ts';
import type { Loader } from './loader/loader.ts';
import { findRevision } from './models/find-revision.ts';
import type { LeasedModel, ServedModel } from './models/served-model.ts';
import { EngineWatch } from './models/watch.ts';
import { type Models, openModels } from './open-models.ts';
import { openQueue } from './open-queue.ts';
import type { AgentContext } from './request/agent-context.ts';
import type { Settings } from './settings/settings.ts';
import type { Clock } from './stream/clock.ts';
import { StreamWorkers } from './stream/workers.ts';
import { registerGauges } from './telemetry/gauges.ts';
import { createLog } from './telemetry/log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { createGpuReaders } from './telemetry/power.ts';

/** Interval of keepalives: under the 10 s of the protocol and any proxy's idle timeout. */
export const KEEPALIVE_MS = 5_000;
/** Steps of streams at the engine for each slot: a step is a third of a second, an utterance up to twenty. */
const STEPS_PER_SLOT = 8;

/** Dependencies that tests replace. */
export interface AgentOverrides {
  readonly now?: () => number;
  readonly write?: (line: string) => void;
  readonly engine?: Engine;
  readonly models?: readonly ServedModel[];
  readonly keepaliveMs?: number;
  readonly clock?: Clock;
  readonly degrader?: Degrader;
}

/** Steps of streams at the engine at once, those of all workers together. */
export const stepSlotsOf = ({ slots }: Settings): number => slots * STEPS_PER_SLOT;

/** Returns the stream workers of the settings; `undefined` where this process carries streams itself. */
function openWorkers(settings: Settings, log: ReturnType<typeof createLog>, keepaliveMs: number) {
  const { agent, engine, streams, workers: count, aac } = settings;
  if (count === 1) return undefined;
  const slots = Math.ceil(stepSlotsOf(settings) / count);
  return new StreamWorkers({ count, log, settings: { agent, engine, streams, slots, keepaliveMs, aac } });
}

/** Registers what the settings allow and cost, so that queries compare load and work with both (A19). */
export function registerSettings(
  registry: Registry,
  { slots, streams, price }: Pick<Settings, 'slots' | 'streams' | 'price'>,
): void {
  registerGauges(registry, {
    auricle_agent_slots_limit: ['Utterances at the engine at once, at most', () => slots],
    auricle_agent_streams_limit: ['Live streams open at once, at most', () => streams],
    ...(price !== undefined && {
      auricle_agent_price_dollars_per_hour: ['Price of the agent and its engine', () => price],
    }),
  });
}

interface MetricsParts {
  readonly registry: Registry;
  readonly dispatcher: Dispatcher;
  readonly watch: EngineWatch;
  readonly failures: Models['failures'];
  readonly workers: StreamWorkers | undefined;
  readonly enginePage: (() => Promise<string | undefined>) | undefined;
  readonly context: () => AgentContext;
}

function openMetrics(parts: MetricsParts): Metrics {
  const { registry, dispatcher, watch, failures, workers, enginePage, context } = parts;
  return createMetrics(registry, {
    queued: dispatcher.queued,
    busy: () => context().busy(),
    slotsUsed: dispatcher.busy,
    engineReady: watch.ready,
    draining: () => context().draining(),
    failedModels: () => failures.list().length,
    engine: watch.statistics,
    ...(workers && { workers: () => workers.metrics() }),
    ...(enginePage && { enginePage }),
  });
}

/** Returns what finds a served revision of a model, or a named one that is not loaded and can only be leased. */
function finderOf(watch: EngineWatch, { part }: ReleaseMapStore, loader: Loader | undefined) {
  const unloaded = (name: string) => (loader?.unloaded() ?? []).filter((one) => one.name === name);
  return (name: string, revision?: string): ServedModel | undefined => {
    const served = findRevision(watch.revisions(name), part, revision);
    if (served || revision === undefined) return served;
    return findRevision(
      unloaded(name).map((description) => ({ description })),
      part,
      revision,
    );
  };
}

/** Opens the keys, the engine and the models of an agent. `context` is called when metrics are read. */
export async function openBackend(settings: Settings, overrides: AgentOverrides, context: () => AgentContext) {
  const { agent, serviceKeys, slots, stateDir } = settings;
  const now = overrides.now ?? Date.now;
  const log = createLog(agent, now, overrides.write ?? ((line) => void process.stdout.write(line)));
  const keepaliveMs = overrides.keepaliveMs ?? KEEPALIVE_MS;
  const workers = openWorkers(settings, log, keepaliveMs);
  const engine =
    overrides.engine ?? openEngine(settings.engine, slots + stepSlotsOf(settings), settings.loader ? 'live' : 'ready');
  const outbox = openOutbox(stateDir, agent, now);
  const keys = await createKeys(agent, createAttest(settings.attestation));
  const poolToken = openPoolToken(settings.poolToken, { now, log });
  const releaseMap = await openReleaseMap({ keys: serviceKeys, stateDir, now, log });
  const registry = new Registry();
  registerSettings(registry, settings);
  const { read, failures, loader } = await openModels({
    ...{ settings, engine, outbox, keys, token: poolToken.read, releaseMap, now, log, registry },
    given: overrides.models,
    run: (task) => dispatcher.run(task),
    onChange: () => watch.reload(),
  });
  const reload = async () => {
    const models = await read();
    workers?.prepare(models);
    return models;
  };
  const models = await reload();
  const watch = new EngineWatch({ engine, models, reload, failures, record: outbox.record, log, agent });
  const serviceTime = createServiceTime(now);
  const enginePage = settings.engineMetricsUrl ? createEngineMetrics(settings.engineMetricsUrl) : undefined;
  // The embedded engine of CPU pools has no gauges of GPUs.
  const gpus = createGpuReaders(settings.accelerator === 'gpu' ? enginePage : undefined, now);
  const { dispatcher, degrader, results } = openQueue({
    ...{ settings, registry, outbox, log, engine, now, gpu: gpus.use },
    levels: watch.levels,
    given: overrides.degrader,
    onServed(milliseconds, name) {
      serviceTime.add(milliseconds, name);
      metrics.served(milliseconds);
    },
  });
  const metrics = openMetrics({ registry, dispatcher, watch, failures, workers, enginePage, context });
  const model = finderOf(watch, releaseMap, loader);
  const lease = async (wanted: ServedModel, signal: AbortSignal): Promise<LeasedModel | undefined> => {
    if (!loader) return { model: wanted, release() {} };
    const { name, revision } = wanted.description;
    const leased = await loader.lease(name, revision, signal);
    const loaded = watch.revisions(name).find(({ description }) => description.revision === revision);
    if (leased && loaded) return { model: loaded, release: leased.release };
    leased?.release();
    return undefined;
  };
  const descriptions = () => {
    const served = watch.descriptions();
    // A revision between the two is in both: in none, callers would be refused it.
    const isServed = ({ name, revision }: ModelDescription) =>
      served.some((one) => one.name === name && one.revision === revision);
    const others = loader?.unloaded().filter((one) => !isServed(one)) ?? [];
    return [...served, ...others].map((one) => {
      const residency = loader?.residency(one.name, one.revision);
      return residency ? { ...one, residency } : one;
    });
  };
  return {
    ...{
      settings,
      now,
      log,
      keepaliveMs,
      workers,
      engine,
      outbox,
      keys,
      poolToken,
      releaseMap,
      failures,
      watch,
      serviceTime,
    },
    ...{ dispatcher, degrader, results, metrics, power: gpus.power, model, lease, descriptions, loader },
    clock: overrides.clock,
  };
}

export type Backend = Awaited<ReturnType<typeof openBackend>>;
