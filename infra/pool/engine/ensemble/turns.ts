/** Who may go on only when those before him with the same key are through. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before ? before.then(act) : act();
    // Whatever comes of it, the next one has his turn.
    const through = turn.catch(() => {});
    this.#last.set(key, through);
    void through.then(() => {
      if (this.#last.get(key) === through) this.#last.delete(key);
    });
    return turn;
  }
}
