import { AggregatorRegistry, Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import type { EngineCounts } from './engine-counters.ts';
import { registerEngineCounters } from './engine-counters.ts';
import { registerGauges } from './gauges.ts';

/** Values that a scrape reads. */
export interface Levels {
  queued(): Record<RequestClass, number>;
  /** Requests being worked on. */
  busy(): number;
  /** Utterances at the engine. */
  slotsUsed(): number;
  engineReady(): boolean;
  draining(): boolean;
  /** Models that the engine failed to load. */
  failedModels(): number;
  /** Reads counters of the engine by model, without those that it does not report. */
  engine(): Promise<ReadonlyMap<string, EngineCounts>>;
  /** Reads the metrics of the stream workers, to be added to those of this process. */
  workers?(): Promise<ExportedMetrics[]>;
  /** Reads the engine's own page, where the settings name it; `undefined` when it cannot be read. */
  enginePage?(): Promise<string | undefined>;
}

const buckets = { service: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30], utterance: [0.5, 1, 2, 5, 10, 15, 20] };

/** Metrics of a stream worker, as its registry exports them. */
export type ExportedMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export function createUtteranceHistogram(registry: Registry): Histogram {
  return new Histogram({
    name: 'auricle_agent_utterance_seconds',
    help: 'Length of the utterances given to the engine',
    buckets: buckets.utterance,
    registers: [registry],
  });
}

/** Counters and histograms of requests. */
function createRequestMetrics(registry: Registry) {
  const registers = [registry];
  const requests = new Counter({
    name: 'auricle_agent_requests_total',
    help: 'Short requests by outcome: ok, or the reason of the refusal',
    labelNames: ['outcome'],
    registers,
  });
  const audio = new Counter({
    name: 'auricle_agent_audio_seconds_total',
    help: 'Seconds of recordings heard to their end',
    labelNames: ['class'],
    registers,
  });
  const speech = new Counter({
    name: 'auricle_agent_speech_seconds_total',
    help: 'Seconds of them in which voice was found',
    labelNames: ['class'],
    registers,
  });
  const cached = new Counter({
    name: 'auricle_agent_cached_results_total',
    help: 'Recordings that a degraded agent answered with a stored result',
    registers,
  });
  const utterances = createUtteranceHistogram(registry);
  const service = new Histogram({
    name: 'auricle_agent_service_seconds',
    help: 'How long an utterance held an engine slot',
    buckets: buckets.service,
    registers,
  });
  return { requests, audio, speech, cached, utterances, service };
}

/** Prometheus metrics of one agent (R14). Labels are classes and refusal reasons only: no tenant, no content. */
export function createMetrics(registry: Registry, levels: Levels) {
  const registers = [registry];
  const { requests, audio, speech, cached, utterances, service } = createRequestMetrics(registry);
  registerGauges(registry, {
    auricle_agent_requests_in_flight: ['Short requests being worked on', () => levels.busy()],
    auricle_agent_slots_used: ['Utterances at the engine', () => levels.slotsUsed()],
    auricle_agent_engine_ready: ['1 while the engine answers its readiness check', () => Number(levels.engineReady())],
    auricle_agent_failed_models: ['Models that the engine failed to load', () => levels.failedModels()],
    auricle_agent_draining: ['1 while no new work is taken', () => Number(levels.draining())],
  });
  new Gauge({
    name: 'auricle_agent_queue_depth',
    help: 'Utterances waiting for the engine',
    labelNames: ['class'],
    registers,
    collect() {
      const queued = levels.queued();
      for (const name of classes) this.set({ class: name }, queued[name]);
    },
  });

  registerEngineCounters(registry, levels.engine);
  const { enginePage } = levels;
  const pageRead =
    enginePage &&
    new Gauge({
      name: 'auricle_agent_engine_metrics_up',
      help: "1 when the engine's own metrics (nv_*) are on this page",
      registers,
    });

  /** Returns the agent's page with the engine's below it, where that can be read. */
  async function text(): Promise<string> {
    const engine = await enginePage?.();
    pageRead?.set(Number(engine !== undefined));
    const workers = (await levels.workers?.()) ?? [];
    const all =
      workers.length > 0 ? AggregatorRegistry.aggregate([await registry.getMetricsAsJSON(), ...workers]) : registry;
    return `${await all.metrics()}${engine ?? ''}`;
  }

  return {
    request: (outcome: string) => requests.inc({ outcome }),
    recorded(name: RequestClass, { seconds, speechSeconds }: { seconds: number; speechSeconds: number }) {
      audio.inc({ class: name }, seconds);
      speech.inc({ class: name }, speechSeconds);
    },
    cached: () => cached.inc(),
    utterance: (seconds: number) => utterances.observe(seconds),
    served: (milliseconds: number) => service.observe(milliseconds / 1_000),
    contentType: registry.contentType,
    /** Registry of the page, for metrics that other modules add. */
    registry,
    text,
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
