/** Clock of the batcher: monotonic microseconds, and one-shot alarms. Handed in, so that tests control it. */
export interface Clock {
  now(): number;
  /** Calls `act` at or after `at`; returns a function that cancels the call. */
  alarm(at: number, act: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now() * 1000,
  alarm(at, act) {
    const timer = setTimeout(act, Math.max(1, Math.ceil((at - this.now()) / 1000)));
    return () => clearTimeout(timer);
  },
};
