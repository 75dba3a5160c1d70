/** Time as the batcher sees it: microseconds that never go back, and one-shot alarms. Handed in, so that tests own it. */
export interface Clock {
  now(): number;
  /** Calls `act` at or after `at`; the answer cancels it. */
  alarm(at: number, act: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now() * 1000,
  alarm(at, act) {
    const timer = setTimeout(act, Math.max(1, Math.ceil((at - this.now()) / 1000)));
    return () => clearTimeout(timer);
  },
};
