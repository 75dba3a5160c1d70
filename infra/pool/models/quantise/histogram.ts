import type { Range } from './to-static.ts';

const BINS = 4096;
/** Ranges that are tried, from everything that was seen to an eighth of it. */
const PARTS = 32;

/** What was seen of an activation: how often which values came, in bins that widen as larger ones come. */
export class Histogram {
  #counts = new Float64Array(BINS);
  /** Half the width of all bins together; a power of two, so that bins are joined two by two. */
  #reach = 2 ** -20;
  // Nothing is a value, too: what is padded is not seen here.
  #min = 0;
  #max = 0;

  /** False when a number is none or has no bounds: then nothing is known of it. */
  add(values: Float32Array): boolean {
    let [min, max] = [this.#min, this.#max];
    // By place: of a billion numbers, iterators would take most of the time.
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
      // Never negative, so that cutting off is rounding down.
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
   * The range of fewest squared errors in 8 bits: what lies outside is off by as much as it is outside, everything else by up
   * to half a step. It has no share to choose, and unlike the extremes it is not ruled by one value that came once.
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
