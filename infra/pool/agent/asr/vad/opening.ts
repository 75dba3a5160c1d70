import { OPENING_SAMPLES } from '../detect-language.ts';
import { UNIT_SAMPLES } from './detect.ts';

/** Silent units between two voiced ones that stay: 0.3 s, a pause inside a sentence. */
const PAUSE_UNITS = 6;

/** The first `OPENING_SAMPLES` of the speech in a recording, of the channel that has speech first. */
export class Opening {
  readonly #units: Float32Array[] = [];
  #channel: number | undefined;
  #silent = 0;

  push(unit: Float32Array, voiced: boolean, channel = 0): void {
    if (voiced) this.#channel ??= channel;
    if (this.#channel !== channel || this.isFull) return;
    this.#silent = voiced ? 0 : this.#silent + 1;
    if (this.#silent <= PAUSE_UNITS) this.#units.push(unit);
  }

  get isFull(): boolean {
    return this.#units.length * UNIT_SAMPLES >= OPENING_SAMPLES;
  }

  /** Empty for a recording without speech. */
  samples(): Float32Array {
    const all = new Float32Array(this.#units.length * UNIT_SAMPLES);
    for (const [at, unit] of this.#units.entries()) all.set(unit, at * UNIT_SAMPLES);
    return all;
  }
}
