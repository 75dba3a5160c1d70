/** Many measurements, and what share of them is below what. */
export class Samples {
  #values = new Float64Array(1 << 16);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const grown = new Float64Array(this.#count * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#count++] = value;
  }

  /** Nearest rank; `NaN` when there are none. */
  at(...shares: number[]): number[] {
    const sorted = this.#values.slice(0, this.#count).sort();
    return shares.map((share) => sorted[Math.max(0, Math.ceil(share * this.#count) - 1)] ?? Number.NaN);
  }
}
