import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

/** Length of the window of service times, and the grain in which they leave it. */
const SERVICE_WINDOW_MS = 10_000;
const GRAIN_MS = 1_000;

interface Grain {
  readonly from: number;
  count: number;
  readonly milliseconds: Record<RequestClass, number>;
}

export type ServiceTime = ReturnType<typeof createServiceTime>;

/** Service times of the last seconds (`SERVICE_WINDOW_MS`). */
export function createServiceTime(now: () => number) {
  let grains: Grain[] = [];

  function recent(): readonly Grain[] {
    const oldest = now() - SERVICE_WINDOW_MS;
    if ((grains[0]?.from ?? oldest) < oldest) grains = grains.filter(({ from }) => from >= oldest);
    return grains;
  }
  const total = (some: readonly RequestClass[]): number =>
    recent().reduce((sum, { milliseconds }) => some.reduce((all, name) => all + milliseconds[name], sum), 0);

  return {
    add(milliseconds: number, name: RequestClass): void {
      let last = recent().at(-1);
      if (!last || now() - last.from >= GRAIN_MS) {
        last = { from: now(), count: 0, milliseconds: { realtime: 0, interactive: 0, default: 0, batch: 0 } };
        grains.push(last);
      }
      last.count += 1;
      last.milliseconds[name] += milliseconds;
    },
    /** Mean milliseconds; 0 when nothing happened. */
    mean(): number {
      const count = recent().reduce((sum, one) => sum + one.count, 0);
      return count === 0 ? 0 : total(classes) / count;
    },
    /** Slots that classes more urgent than this one held, on average. */
    urgentSlots: (name: RequestClass): number => total(classes.slice(0, classes.indexOf(name))) / SERVICE_WINDOW_MS,
  };
}
