/** The clock and the randomness of a request; tests pass their own. */
export interface Runtime {
  /** Epoch ms. In a Worker it moves only across I/O. */
  readonly now: () => number;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly after: (ms: number) => Alarm;
}

/** A cancellable delay. */
export interface Alarm {
  /** Resolves at the end of the delay; never once cancelled. */
  readonly rings: Promise<typeof late>;
  readonly cancel: () => void;
}

/** The result of work that exceeded its deadline. */
export const late: unique symbol = Symbol('late');

export const realRuntime: Runtime = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms) => {
    let timer: ReturnType<typeof setTimeout>;
    const rings = new Promise<typeof late>((resolve) => {
      timer = setTimeout(() => resolve(late), ms);
    });
    return { rings, cancel: () => clearTimeout(timer) };
  },
};

/** Returns the value, or `late` after `ms`. A later value or error is dropped. */
export async function within<T>(work: Promise<T>, ms: number, { after }: Runtime): Promise<T | typeof late> {
  const alarm = after(ms);
  try {
    return await Promise.race([work, alarm.rings]);
  } finally {
    alarm.cancel();
  }
}
