/** Runs actions with the same key one after the other, in order of arrival. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before ? before.then(act) : act();
    // A failure does not block the next action.
    const through = turn.catch(() => {});
    this.#last.set(key, through);
    void through.then(() => {
      if (this.#last.get(key) === through) this.#last.delete(key);
    });
    return turn;
  }
}
