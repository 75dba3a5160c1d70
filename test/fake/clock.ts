import type { Clock } from '../../infra/pool/agent/stream/clock.ts';

/** Lets everything run that can without a timer. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Time that passes when the test says so. */
export function createFakeClock(start = 1_000_000) {
  let now = start;
  let timers: { at: number; run: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  return {
    clock,
    now: () => now,
    timers: () => timers.length,
    /** So many milliseconds are gone at once, as when the process was held up: all that is due runs in one go. */
    jump(milliseconds: number) {
      now += milliseconds;
      const due = timers.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
      timers = timers.filter(({ at }) => at > now);
      for (const { run } of due) run();
    },
    /** Lets so many milliseconds pass; what is due runs on the way, in order, and so does all that follows from it. */
    async advance(milliseconds: number) {
      const end = now + milliseconds;
      await settle();
      for (;;) {
        const due = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        now = Math.max(now, due.at);
        timers = timers.filter((timer) => timer !== due);
        due.run();
        for (let turn = 0; turn < 3; turn++) await settle();
      }
      now = end;
      await settle();
    },
  };
}

export type FakeClock = ReturnType<typeof createFakeClock>;
