import { joinSamples } from '../../audio/join.ts';
import type { Sound } from '../../audio/mono.ts';
import { UTTERANCE_S } from '../../settings/limits.ts';
import { UNIT_SAMPLES, UNIT_SECONDS } from './detect.ts';

/** A piece of speech for the recogniser. */
export interface Utterance {
  /** Position of its first sample in the recording, counted in samples at 16 kHz. */
  readonly start: number;
  readonly samples: Float32Array;
  /** Seconds of it in which voice was found. */
  readonly speechSeconds: number;
  /** Number of its channel, from 0, where channels are separate. */
  readonly channel?: number | undefined;
}

/** Live sound is kept in 16 bits, since there is much of it at once. */
export interface Unit<Samples extends Sound = Float32Array> {
  readonly samples: Samples;
  readonly voiced: boolean;
}

/** Voiced units in a row that begin an utterance: a click is shorter. */
export const ONSET_UNITS = 2;
/** Unvoiced units that end one: 600 ms, longer than a pause inside a sentence. */
const RELEASE_UNITS = 12;
/** Units kept before the onset and after the end (300 ms), where soft sounds hide from the detector. */
export const PADDING_UNITS = 6;
/** Longest utterance in units. */
export const MOST_UNITS = UTTERANCE_S / UNIT_SECONDS;

export function energy(samples: Sound): number {
  let sum = 0;
  for (let i = 0; i < samples.length; i++) sum += (samples[i] as number) ** 2;
  return sum;
}

/**
 * Returns the cut of an utterance that is too long: behind the quietest unit of the second half. Its
 * neighbours count half as much each, since the closure of a `t` or `b` is as silent as a pause, only
 * shorter.
 */
export function quietestCut(energies: readonly number[]): number {
  const at = (i: number) => energies[Math.min(i, energies.length - 1)] ?? 0;
  const loudness = (i: number) => at(i - 1) + 2 * at(i) + at(i + 1);
  let best = energies.length - 1;
  for (let i = best; i >= Math.floor(energies.length / 2); i--) if (loudness(i) < loudness(best)) best = i;
  return best + 1;
}

/**
 * Cuts units into utterances with hysteresis: silence is dropped, pauses inside speech are kept, and nothing is longer
 * than `UTTERANCE_S`. Holds at most one utterance. Same units, same cuts.
 */
export function createCutter() {
  let held: Unit[] = [];
  /** Index of `held[0]` in the recording. */
  let first = 0;
  let speaking = false;
  /** Length of the current run of voiced units (before speech) or unvoiced units (inside it). */
  let run = 0;

  function drop(count: number) {
    held = held.slice(count);
    first += count;
  }

  function take(count: number): Utterance {
    const units = held.slice(0, count);
    const samples = joinSamples(units.map((unit) => unit.samples));
    const start = first * UNIT_SAMPLES;
    drop(count);
    return { start, samples, speechSeconds: units.filter((unit) => unit.voiced).length * UNIT_SECONDS };
  }

  function end(): Utterance | undefined {
    speaking = false;
    // The rest of a cut at the quietest point may be silence only.
    if (!held.some((unit) => unit.voiced)) return undefined;
    const utterance = take(held.length - Math.max(0, run - PADDING_UNITS));
    run = 0;
    if (held.length > PADDING_UNITS) drop(held.length - PADDING_UNITS);
    return utterance;
  }

  return {
    push(unit: Unit): Utterance | undefined {
      held.push(unit);
      if (!speaking) {
        run = unit.voiced ? run + 1 : 0;
        if (run >= ONSET_UNITS) {
          speaking = true;
          run = 0;
        } else if (held.length >= PADDING_UNITS + ONSET_UNITS) drop(1);
        return undefined;
      }
      run = unit.voiced ? 0 : run + 1;
      if (run >= RELEASE_UNITS) return end();
      if (held.length < MOST_UNITS) return undefined;
      const cut = quietestCut(held.map(({ samples }) => energy(samples)));
      run = Math.min(run, held.length - cut);
      return take(cut);
    },
    /** The recording is over: what is being said ends here. */
    finish(): Utterance | undefined {
      return speaking ? end() : undefined;
    },
    /** Units held, for the bound's test. */
    heldUnits: () => held.length,
  };
}
