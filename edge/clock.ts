/** Time and chance, handed in so that a test can hold both. */
export interface Surroundings {
  /** Milliseconds since 1970. In a Worker it moves only across I/O. */
  readonly now: () => number;
  /** 0 up to, not including, 1. */
  readonly random: () => number;
  /** Resolves with `late` after `ms`, unless cancelled. */
  readonly after: (ms: number) => Alarm;
}

export interface Alarm {
  readonly rings: Promise<typeof late>;
  readonly cancel: () => void;
}

export const late: unique symbol = Symbol('late');

export const realSurroundings: Surroundings = {
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

/** The value, or `late` when it took longer than `ms`. What comes too late is dropped, errors included. */
export async function within<T>(work: Promise<T>, ms: number, { after }: Surroundings): Promise<T | typeof late> {
  const alarm = after(ms);
  try {
    return await Promise.race([work, alarm.rings]);
  } finally {
    alarm.cancel();
    work.catch(() => {});
  }
}
