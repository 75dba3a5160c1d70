// Sample rate conversion by a windowed-sinc filter kept as a polyphase table (Smith, "Digital Audio Resampling";
// Kaiser window). Own code, because it is small and because the packages for it are larger than the agent.

/** Shape of a filter, which sets its length and so its cost. */
interface Shape {
  /** Zero crossings of the sinc on each side: with the window below the stop band lies 80 dB down. */
  readonly crossings: number;
  /** Middle of the slope as a share of the lower Nyquist frequency. */
  readonly pass: number;
}

/** Keeps nearly the whole band. */
const WIDE: Shape = { crossings: 32, pass: 0.92 };
/**
 * Keeps what sound sampled at half the lower rate carries, 4 kHz of 16 kHz sound, in a sixth of the time: its slope
 * reaches as far beyond the Nyquist frequency as below it, so that only the upper half of the band takes aliases.
 */
const NARROW: Shape = { crossings: 5, pass: 1 };
const KAISER_BETA = 8.5;
/** Rates that would need more phases than this are rounded to the nearest one: 1/2048 sample, about -79 dB at 1 kHz. */
const PHASES = 1024;

/** Modified Bessel function of the first kind, order 0 (series; Abramowitz and Stegun 9.6.12). */
function bessel(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));

interface Filter {
  /** Coefficients of each phase, oldest sample first. */
  readonly phases: readonly Float32Array[];
  /** Samples on each side of the output's position. */
  readonly half: number;
}

const filters = new Map<string, Filter>();

function filterFor(from: number, to: number, shape: Shape = WIDE): Filter {
  const key = `${from}>${to} ${shape.crossings}`;
  const known = filters.get(key);
  if (known) return known;
  const count = Math.min(to / divisor(from, to), PHASES);
  const cutoff = shape.pass * Math.min(1, to / from);
  const half = Math.ceil(shape.crossings / Math.min(1, to / from));
  const norm = bessel(KAISER_BETA);
  const phases = Array.from({ length: count }, (_, phase) => {
    const taps = Float32Array.from({ length: 2 * half }, (_, tap) => {
      const x = tap - half + 1 - phase / count;
      const window = Math.abs(x) < half ? bessel(KAISER_BETA * Math.sqrt(1 - (x / half) ** 2)) / norm : 0;
      return window * (x === 0 ? cutoff : Math.sin(Math.PI * cutoff * x) / (Math.PI * x));
    });
    // Each phase passes a constant unchanged, so that rounding adds no tone at the output rate.
    const gain = taps.reduce((sum, tap) => sum + tap, 0);
    return taps.map((tap) => tap / gain);
  });
  const filter = { phases, half };
  // Files have a dozen rates in practice; a caller who tries thousands must not fill the memory.
  if (filters.size >= 32) filters.clear();
  filters.set(key, filter);
  return filter;
}

export interface Resampler {
  /** Returns the output that the samples so far determine; the rest waits for more. */
  push(samples: Float32Array): Float32Array;
  /** The tail. Altogether `round(input × to / from)` samples come out, aligned with the input. */
  finish(): Float32Array;
}

/** The first input sample that output sample `output` is made of; 0 when silence before the recording is, too. */
export function firstInput(from: number, to: number, output: number): number {
  return from === to ? output : Math.max(0, Math.floor((output * from) / to) - filterFor(from, to).half + 1);
}

/**
 * Converts one channel from `from` Hz to `to` Hz as it arrives, holding one filter length of samples. `output`: it goes
 * on in the middle, its first result is that sample, and its input begins at `firstInput` of it. A narrow one halves the
 * band of sound that loses samples; other sound would keep its mirror images.
 */
export function createResampler(from: number, to: number, output = 0, isNarrow = false): Resampler {
  if (from === to) return { push: (samples) => samples, finish: () => new Float32Array(0) };
  const { phases, half } = filterFor(from, to, isNarrow && from > to ? NARROW : WIDE);
  let received = output === 0 ? 0 : firstInput(from, to, output);
  // `held[0]` is the sample at input position `start`; silence precedes the first one.
  let held: Float32Array = new Float32Array(received === 0 ? half - 1 : 0);
  let start = received - held.length;
  let produced = output;

  /** Input position of the first sample that is not 0 at or behind the one looked for last. */
  let sound = start;

  /** Whether there is any sound in the window: hours of digital silence need no arithmetic. */
  function isSilent(first: number, end: number): boolean {
    sound = Math.max(sound, first);
    while (sound < end && held[sound - start] === 0) sound++;
    return sound >= end;
  }

  function run(available: number, limit: number): Float32Array {
    const out: Float32Array = new Float32Array(Math.max(0, Math.ceil(((available - start) * to) / from) + 1));
    let count = 0;
    while (produced + count < limit) {
      // Exact position: whole samples by integer division, the phase from its remainder.
      const scaled = (produced + count) * from;
      let base = Math.floor(scaled / to);
      let phase = Math.round(((scaled - base * to) * phases.length) / to);
      if (phase === phases.length) {
        phase = 0;
        base++;
      }
      if (base + half >= available) break;
      const taps = phases[phase] as Float32Array;
      const first = base - half + 1 - start;
      let sum = 0;
      const length = isSilent(start + first, base + half + 1) ? 0 : taps.length;
      for (let tap = 0; tap < length; tap++) sum += (taps[tap] as number) * (held[first + tap] as number);
      out[count++] = sum;
    }
    produced += count;
    const keep = Math.max(0, Math.min(held.length, Math.floor((produced * from) / to) - half + 1 - start));
    held = held.slice(keep);
    start += keep;
    return out.subarray(0, count);
  }

  function append(samples: Float32Array) {
    const joined = new Float32Array(held.length + samples.length);
    joined.set(held);
    joined.set(samples, held.length);
    held = joined;
  }

  return {
    push(samples) {
      append(samples);
      received += samples.length;
      return run(received, Number.POSITIVE_INFINITY);
    },
    finish() {
      append(new Float32Array(half + 2));
      return run(received + half + 2, Math.round((received * to) / from));
    },
  };
}
