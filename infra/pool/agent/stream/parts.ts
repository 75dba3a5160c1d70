import type { Clock } from './clock.ts';
import type { Ends } from './ends.ts';
import type { StreamMetrics } from './metrics.ts';
import type { Tracks } from './tracks.ts';

/** What the live streams of an agent share. */
export interface LiveParts {
  /** Streams that may be open at once. */
  readonly most: number;
  readonly clock: Clock;
  readonly tracks: Tracks;
  readonly ends: Ends;
  readonly metrics: StreamMetrics;
  /** Whether the engine answers: while it does not, no stream is let in. */
  readonly engineReady: () => boolean;
  /** A sequence id that no other sequence of this engine ever has. */
  readonly newId: () => number;
}
