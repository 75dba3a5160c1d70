/** A counting semaphore. Waiters enter in order of arrival. */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns a function that leaves, once; `undefined` when `signal` has aborted before there was room. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      const admit = () => {
        signal.removeEventListener('abort', giveUp);
        this.#busy++;
        resolve(this.#leaveOnce());
      };
      const giveUp = () => {
        const at = this.#waiting.indexOf(admit);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(undefined);
      };
      if (signal.aborted) return giveUp();
      if (this.#busy < this.#most) return admit();
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(admit);
    });
  }

  busy(): number {
    return this.#busy;
  }

  #leaveOnce(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#busy--;
      this.#waiting.shift()?.();
    };
  }
}
