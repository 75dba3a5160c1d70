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
  const open = new Map<string, { readonly track: Track; streams: number }>();
  const sum = (count: (track: Track) => number) =>
    [...open.values()].reduce((total, { track }) => total + count(track), 0);

  /** Returns the track of a stream's model, which is dropped when `signal` of its last stream has aborted. */
  function of(model: string, signal: AbortSignal): Track {
    const entry = open.get(model) ?? {
      track: { steps: createSteps(options), rebuilds: new Semaphore(options.rebuilds) },
      streams: 0,
    };
    open.set(model, entry);
    entry.streams++;
    const leave = () => {
      if (--entry.streams === 0) open.delete(model);
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return entry.track;
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
