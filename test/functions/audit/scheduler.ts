// Chooses the next storage call to answer and its outcome; deterministic by seed.

/** Outcome of a call: done, or one of the ways in which it is unknown. */
export type Fate = 'done' | 'failed' | 'failed but done' | 'done but denied' | 'crash' | 'done and crash';

export class Failed extends Error {}

interface Call {
  readonly actor: object;
  readonly what: string;
  run(): Promise<unknown>;
  settle(value: unknown): void;
  fail(error: unknown): void;
}

/** Holds every call back until it is its turn. An actor that crashed is never answered again. */
export class Scheduler {
  readonly #calls: Call[] = [];
  readonly #dead = new WeakSet<object>();

  ask<T>(actor: object, what: string, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((settle, fail) => {
      if (this.#dead.has(actor)) return;
      this.#calls.push({ actor, what, run, settle: settle as (value: unknown) => void, fail });
    });
  }

  get waiting(): number {
    return this.#calls.length;
  }

  /** Answers one call, chosen by `random`. Returns whose process died of it. */
  async next(random: () => number, decide: (what: string) => Fate): Promise<object | undefined> {
    const [call] = this.#calls.splice(Math.floor(random() * this.#calls.length), 1);
    if (!call) return undefined;
    const fate = decide(call.what);
    if (fate === 'failed') call.fail(new Failed(call.what));
    else if (fate !== 'crash') {
      try {
        const value = await call.run();
        if (fate === 'done') call.settle(value);
        if (fate === 'failed but done') call.fail(new Failed(call.what));
        // The client library tried again by itself and found what it had done.
        if (fate === 'done but denied') call.settle(typeof value === 'boolean' ? false : value);
      } catch (error) {
        call.fail(error);
      }
    }
    if (fate !== 'crash' && fate !== 'done and crash') return undefined;
    this.#dead.add(call.actor);
    for (let at = this.#calls.length - 1; at >= 0; at -= 1) {
      if (this.#calls[at]?.actor === call.actor) this.#calls.splice(at, 1);
    }
    return call.actor;
  }
}
