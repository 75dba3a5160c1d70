import { Counter, Histogram, type Registry } from 'prom-client';
import { registerGauges } from '../telemetry/gauges.ts';
import type { RebuildCause } from './sequence.ts';
import type { Tracks } from './tracks.ts';

/** Levels that are read at each scrape. */
export interface StreamLevels {
  open(): number;
  readonly tracks: Pick<Tracks, 'busy' | 'queued' | 'rebuilding'>;
}

/** Metrics of live streams (R1, R14). Labels are reasons only: no tenant, no content. */
export function createStreamMetrics(registry: Registry, levels: StreamLevels) {
  const registers = [registry];
  registerGauges(registry, {
    auricle_agent_streams_open: ['Live streams open', levels.open],
    auricle_agent_stream_steps: ['Windows of live streams at the engine', levels.tracks.busy],
    auricle_agent_stream_steps_queued: ['Windows of live streams waiting for the engine', levels.tracks.queued],
    auricle_agent_stream_rebuilding: ['Sequences being sent again', levels.tracks.rebuilding],
  });
  const streams = new Counter({
    name: 'auricle_agent_streams_total',
    help: 'Live streams by outcome: ok, or the reason of the refusal',
    labelNames: ['outcome'],
    registers,
  });
  const windows = new Counter({
    name: 'auricle_agent_stream_windows_total',
    help: 'Windows of live streams that were recognised',
    registers,
  });
  const stalls = new Counter({
    name: 'auricle_agent_stream_stalls_total',
    help: 'Steps the engine did not answer in time (A8)',
    registers,
  });
  const rebuilds = new Counter({
    name: 'auricle_agent_stream_rebuilds_total',
    help: 'Sequences that were begun again, by what became of the one before',
    labelNames: ['cause'],
    registers,
  });
  const lag = new Histogram({
    name: 'auricle_agent_stream_lag_seconds',
    help: 'Sound that was heard and not recognised yet, when a window was answered',
    buckets: [0.1, 0.2, 0.4, 0.7, 1, 2, 5, 10, 30],
    registers,
  });
  return {
    ended: (outcome: string) => streams.inc({ outcome }),
    window(lagSeconds: number) {
      windows.inc();
      lag.observe(Math.max(0, lagSeconds));
    },
    stall: () => stalls.inc(),
    rebuild: (cause: RebuildCause) => rebuilds.inc({ cause }),
  };
}

export type StreamMetrics = ReturnType<typeof createStreamMetrics>;
