// Power and use of the engine's GPUs, from the gauges of Triton's metrics page (A14, A33).

/** Interval of reads: Triton samples its GPUs every two seconds. */
const POWER_READ_MS = 5_000;
/** Age at which a reading no longer says anything about the load, ms: two reads failed. */
const POWER_STALE_MS = 15_000;
/** Largest share that a report carries; a limit near 0 W is a fault of the driver. */
const POWER_SHARE_MAX = 10;

/** Returns a gauge of each GPU; none when the page lacks one of them. */
function valuesOf(page: string, gauge: string): readonly number[] {
  const samples = page.split('\n').filter((line) => line.startsWith(`${gauge}{`));
  const values = samples.map((line) => Number(line.split('} ')[1]?.split(' ')[0]));
  return values.every(Number.isFinite) ? values : [];
}

const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0);

/** Returns the mean use of the GPUs, 0 to 1; `undefined` when the page lacks it. */
export function gpuUseOf(page: string): number | undefined {
  const uses = valuesOf(page, 'nv_gpu_utilization');
  return uses.length === 0 ? undefined : Math.min(1, Math.max(0, sum(uses) / uses.length));
}

/** Returns the power drawn as a share of the GPUs' limits; `undefined` when the page lacks either. */
export function powerOf(page: string): number | undefined {
  const [usages, limits] = [valuesOf(page, 'nv_gpu_power_usage'), valuesOf(page, 'nv_gpu_power_limit')];
  if (usages.length === 0 || sum(limits) <= 0) return undefined;
  return Math.min(POWER_SHARE_MAX, Math.max(0, Math.round((sum(usages) / sum(limits)) * 1_000) / 1_000));
}

interface Reading {
  readonly share: number;
  readonly at: number;
}

/**
 * Returns readers of the last known power and use. A call starts a read of the page when the last one is old, and never
 * waits for it.
 */
export function createGpuReaders(readPage: (() => Promise<string | undefined>) | undefined, now: () => number) {
  let reading = false;
  let read = Number.NEGATIVE_INFINITY;
  const last: { power?: Reading; use?: Reading } = {};
  const refresh = async (page: () => Promise<string | undefined>) => {
    reading = true;
    read = now();
    const text = (await page()) ?? '';
    const [power, use] = [powerOf(text), gpuUseOf(text)];
    if (power !== undefined) last.power = { share: power, at: now() };
    if (use !== undefined) last.use = { share: use, at: now() };
    reading = false;
  };
  const readerOf = (gauge: keyof typeof last) => (): number | undefined => {
    if (readPage && !reading && now() - read >= POWER_READ_MS) void refresh(readPage);
    const known = last[gauge];
    return known && now() - known.at < POWER_STALE_MS ? known.share : undefined;
  };
  return { power: readerOf('power'), use: readerOf('use') };
}
