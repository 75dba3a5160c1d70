import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import { Semaphore } from '../engine/semaphore.ts';
import { createSteps, type Steps, type StepsOptions } from './steps.ts';

/** The way of one model's streams to the engine, and the places of those that are sent again. */
export interface Track {
  readonly steps: Steps;
  readonly rebuilds: Semaphore;
}

export interface TracksOptions extends StepsOptions {
  /** Sequences of a model that are sent again at once. */
  readonly rebuilds: number;
}

/** A track for each model, so that one that is stuck holds up its own streams only (A8). */
export function createTracks(options: TracksOptions) {
  const tracks = new Map<string, Track>();
  const sum = (count: (track: Track) => number) =>
    [...tracks.values()].reduce((total, track) => total + count(track), 0);

  function of(model: string): Track {
    const track = tracks.get(model) ?? { steps: createSteps(options), rebuilds: new Semaphore(options.rebuilds) };
    // As many as the repository has live models.
    tracks.set(model, track);
    return track;
  }

  return {
    of,
    busy: () => sum(({ steps }) => steps.busy()),
    queued: () =>
      sum(({ steps }) => {
        const queued: Record<RequestClass, number> = steps.queued();
        return classes.reduce((total, name) => total + queued[name], 0);
      }),
    rebuilding: () => sum(({ rebuilds }) => rebuilds.busy()),
  };
}

export type Tracks = ReturnType<typeof createTracks>;
