import type { Registry } from 'prom-client';
import type { Engine } from '../engine/engine.ts';
import type { Clock } from './clock.ts';
import { createSequenceEnds, type SequenceEnds } from './ends.ts';
import { createStreamMetrics, type StreamMetrics } from './metrics.ts';
import { createSequenceIds } from './sequence-ids.ts';
import { createTracks, type Tracks } from './tracks.ts';

/** Share of the engine's steps that rebuild sequences: more would turn its short pause into a long one. */
const STREAM_REBUILD_SHARE = 0.25;

/** Resources that the live streams of one process share. */
export interface LiveParts {
  readonly clock: Clock;
  readonly tracks: Tracks;
  readonly ends: SequenceEnds;
  readonly metrics: StreamMetrics;
  /** Returns a sequence id that is unique at the engine. */
  readonly newId: () => number;
}

export interface LiveOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Steps of this process at the engine at once. */
  readonly slots: number;
  /** Steps that may wait: one for each stream. */
  readonly capacity: number;
  readonly registry: Registry;
  /** Streams that are open, for the gauge. */
  readonly open: () => number;
}

export function createLiveParts({ engine, clock, slots, capacity, registry, open }: LiveOptions): LiveParts {
  const rebuilds = Math.max(1, Math.floor(slots * STREAM_REBUILD_SHARE));
  const tracks = createTracks({ engine, slots, capacity, rebuilds, clock });
  return {
    clock,
    tracks,
    ends: createSequenceEnds(engine, clock),
    metrics: createStreamMetrics(registry, { open, tracks }),
    newId: createSequenceIds(Math.random()),
  };
}
