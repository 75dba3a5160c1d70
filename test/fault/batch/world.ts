import { randomOf } from '../../fake/random.ts';

// Time, randomness and scheduling of a simulated run: one seed is one reproducible history. Tasks yield at
// every call of a store, and the seed decides which one continues, so that all interleavings occur.

/** Turns after which a run counts as endless. */
const TURNS_MAX = 400_000;

export class World {
  /** Milliseconds since 1970. */
  now = Date.UTC(2026, 0, 1);
  /** No further faults: whatever is not repaired from here on never is. */
  calm = false;
  readonly random: () => number;
  readonly #ready: (() => void)[] = [];
  readonly #later: { at: number; order: number; run: () => void }[] = [];
  readonly bugs: unknown[] = [];
  #order = 0;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  /** Draws a fault of this probability; never once faults have stopped. */
  bad(probability: number): boolean {
    return !this.calm && this.random() < probability;
  }

  between(from: number, to: number): number {
    return Math.floor(from + this.random() * (to - from));
  }

  pick<T>(of: readonly T[]): T {
    return of[Math.floor(this.random() * of.length)] as T;
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.#ready.push(resolve));
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  after(ms: number, run: () => void): void {
    this.#later.push({ at: this.now + ms, order: this.#order++, run });
  }

  /** Starts a task. An uncaught error of it is a bug. */
  go(task: () => Promise<void>): void {
    void this.turn()
      .then(task)
      .catch((error) => this.bugs.push(error));
  }

  /** Runs until no task is left. */
  async run(): Promise<void> {
    for (let turns = 0; turns < TURNS_MAX; turns += 1) {
      if (this.bugs.length > 0) throw this.bugs[0];
      const ready = this.#draw();
      if (ready) ready();
      else if (!this.#next()) return;
      // Runs after every promise that can settle without the outside world, and tasks wait for nothing else.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    throw new Error('does not end');
  }

  #draw(): (() => void) | undefined {
    const last = this.#ready.pop();
    if (last === undefined || this.#ready.length === 0) return last;
    const at = Math.floor(this.random() * (this.#ready.length + 1));
    const drawn = this.#ready[at];
    if (drawn === undefined) return last;
    this.#ready[at] = last;
    return drawn;
  }

  #next(): boolean {
    let first = 0;
    for (const [index, one] of this.#later.entries()) {
      const best = this.#later[first];
      if (best && (one.at < best.at || (one.at === best.at && one.order < best.order))) first = index;
    }
    const [one] = this.#later.splice(first, 1);
    if (!one) return false;
    this.now = Math.max(this.now, one.at);
    one.run();
    return true;
  }
}
