import type { Range } from './to-static.ts';

const BINS = 4096;
/** Candidate ranges, from the full range to an eighth of it. */
const PARTS = 32;

/** Histogram of an activation, with bins that widen as larger values come. */
export class Histogram {
  #counts = new Float64Array(BINS);
  /** Half the width of all bins; a power of two, so that bins merge in pairs. */
  #reach = 2 ** -20;
  // The range includes 0: padding does not occur in samples.
  #min = 0;
  #max = 0;

  /** Adds values; false when one is NaN or infinite, which makes the histogram useless. */
  add(values: Float32Array): boolean {
    let [min, max] = [this.#min, this.#max];
    // An index loop: iterators would take most of the time of a billion numbers.
    for (let at = 0; at < values.length; at++) {
      const value = values[at] as number;
      if (!Number.isFinite(value)) return false;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    [this.#min, this.#max] = [min, max];
    while (Math.max(-min, max) >= this.#reach) this.#widen();
    const [counts, scale] = [this.#counts, BINS / 2 / this.#reach];
    for (let at = 0; at < values.length; at++) {
      // Never negative, so that truncation rounds down.
      const bin = ((values[at] as number) * scale + BINS / 2) | 0;
      counts[bin] = (counts[bin] as number) + 1;
    }
    return true;
  }

  #widen(): void {
    const wider = new Float64Array(BINS);
    for (const [bin, count] of this.#counts.entries()) {
      const at = (bin >> 1) + BINS / 4;
      wider[at] = (wider[at] as number) + count;
    }
    this.#counts = wider;
    this.#reach *= 2;
  }

  /**
   * Returns the range with the least squared error in 8 bits: a value outside is off by its distance, others
   * by up to half a step. No parameter to choose, and unlike the extremes a single outlier does not determine
   * it.
   */
  range(): Range {
    let [best, least]: [Range, number] = [{ low: this.#min, high: this.#max }, Number.POSITIVE_INFINITY];
    for (let part = PARTS; part > PARTS / 8; part--) {
      const [low, high] = [(this.#min * part) / PARTS, (this.#max * part) / PARTS];
      const error = this.#errorOf(low, high);
      if (error < least) [best, least] = [{ low, high }, error];
    }
    return best;
  }

  #errorOf(low: number, high: number): number {
    const [width, step] = [(2 * this.#reach) / BINS, (Math.max(high, 0) - Math.min(low, 0)) / 255];
    let sum = 0;
    for (let bin = 0; bin < BINS; bin++) {
      const count = this.#counts[bin] as number;
      if (count === 0) continue;
      const value = (bin + 0.5) * width - this.#reach;
      const over = value > high ? value - high : value < low ? low - value : 0;
      sum += count * (over > 0 ? over * over : (step * step) / 12);
    }
    return sum;
  }
}
