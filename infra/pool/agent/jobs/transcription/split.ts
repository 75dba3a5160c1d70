import { UNIT_SAMPLES } from '../../asr/vad/detect.ts';
import { MODEL_RATE } from '../../audio/mono.ts';

/** Sound of one job: lost work costs little, and 20 MB of sound fit in memory with those of other jobs. */
export const UPLOAD_PIECE_S = 600;

/** Part of a recording, one channel at 16 kHz in 16 bits. */
export interface Piece {
  /** Position of its first sample in the recording. */
  readonly start: number;
  /** Valid until the splitter is asked for more. */
  readonly samples: Int16Array;
}

/** Units of the pause that is looked for: 500 ms, longer than the closure of any consonant. */
export const PAUSE_UNITS = 10;

/** Samples the buffer starts with: a minute. Short recordings take no room for long ones. */
const FIRST_SAMPLES = 60 * MODEL_RATE;

/** No piece but the last is shorter than this share of the longest there may be: `UPLOAD_PIECES_MAX` counts on it. */
export const SHORTEST_SHARE = 0.8;

/**
 * Finds the cut: the middle of the quietest such pause of the last fifth, the last one of equals. `energies`
 * has one number for each unit of 50 ms. Returns the number of units that stay.
 */
export function findCut(energies: ArrayLike<number>, units: number): number {
  const first = Math.ceil(units * SHORTEST_SHARE);
  let window = 0;
  let best = units;
  let least = Number.POSITIVE_INFINITY;
  for (let unit = first; unit < units; unit++) {
    window += energies[unit] ?? 0;
    if (unit >= first + PAUSE_UNITS) window -= energies[unit - PAUSE_UNITS] ?? 0;
    if (unit < first + PAUSE_UNITS - 1 || window > least) continue;
    least = window;
    best = unit + 1 - PAUSE_UNITS / 2;
  }
  return best;
}

/**
 * Cuts a recording into pieces of at most `most` samples as it arrives, holding one piece. The same samples are cut at
 * the same places, in whatever portions they come: a job that runs twice makes the same pieces.
 */
export function createSplitter(most: number = UPLOAD_PIECE_S * MODEL_RATE) {
  const units = Math.floor(most / UNIT_SAMPLES);
  // Whole numbers, so that sums of them do not depend on the way they were added up.
  const energies = new Float64Array(units);
  let held = new Int16Array(Math.min(FIRST_SAMPLES, units * UNIT_SAMPLES));
  let filled = 0;
  let start = 0;
  /** Samples at the front that were given away and must go before more come. */
  let given = 0;

  function forget() {
    if (given === 0) return;
    held.copyWithin(0, given, filled);
    energies.copyWithin(0, given / UNIT_SAMPLES);
    filled -= given;
    start += given;
    given = 0;
  }

  function grow() {
    const larger = new Int16Array(Math.min(2 * held.length, units * UNIT_SAMPLES));
    larger.set(held);
    held = larger;
  }

  /** Takes samples up to the end of the unit or of the buffer; how many it took. */
  function add(samples: Float32Array): number {
    if (filled === held.length) grow();
    const unit = Math.floor(filled / UNIT_SAMPLES);
    const count = Math.min(samples.length, (unit + 1) * UNIT_SAMPLES - filled, held.length - filled);
    let energy = filled === unit * UNIT_SAMPLES ? 0 : (energies[unit] ?? 0);
    for (let i = 0; i < count; i++) {
      const value = Math.round(Math.max(-1, Math.min(1, samples[i] as number)) * 32_767);
      held[filled + i] = value;
      energy += value * value;
    }
    energies[unit] = energy;
    filled += count;
    return count;
  }

  return {
    /** The pieces that are complete, one at a time: each is to be done with before the next is asked for. */
    *push(samples: Float32Array): Generator<Piece> {
      for (let at = 0; at < samples.length; ) {
        // Only with more to come is it known that there is another piece.
        if (filled === units * UNIT_SAMPLES) {
          given = findCut(energies, units) * UNIT_SAMPLES;
          yield { start, samples: held.subarray(0, given) };
          forget();
        }
        at += add(samples.subarray(at));
      }
    },
    /** Returns the last piece. Empty only when the recording is. */
    finish: (): Piece => ({ start, samples: held.subarray(0, filled) }),
  };
}
