// Power that the GPUs of the engine draw, from the gauges of Triton's metrics page (A14).

/** Interval of reads: Triton samples its GPUs every two seconds. */
const POWER_READ_MS = 5_000;
/** Age at which a reading no longer says anything about the load, ms: two reads failed. */
const POWER_STALE_MS = 15_000;
/** Largest share that a report carries; a limit near 0 W is a fault of the driver. */
const POWER_SHARE_MAX = 10;

/** Returns the sum of a gauge over all GPUs; `undefined` when the page has none. */
function sumOf(page: string, gauge: string): number | undefined {
  const samples = page.split('\n').filter((line) => line.startsWith(`${gauge}{`));
  const values = samples.map((line) => Number(line.split('} ')[1]?.split(' ')[0]));
  return values.length > 0 && values.every(Number.isFinite) ? values.reduce((sum, one) => sum + one, 0) : undefined;
}

/** Returns the mean use of the GPUs, 0 to 1; `undefined` when the page lacks it. */
export function gpuUseOf(page: string): number | undefined {
  const gauge = 'nv_gpu_utilization';
  const sum = sumOf(page, gauge);
  const gpus = page.split('\n').filter((line) => line.startsWith(`${gauge}{`)).length;
  return sum === undefined ? undefined : Math.min(1, Math.max(0, sum / gpus));
}

/** Returns the power drawn as a share of the GPUs' limits; `undefined` when the page lacks either. */
export function powerOf(page: string): number | undefined {
  const [usage, limit] = [sumOf(page, 'nv_gpu_power_usage'), sumOf(page, 'nv_gpu_power_limit')];
  if (usage === undefined || limit === undefined || limit <= 0) return undefined;
  return Math.min(POWER_SHARE_MAX, Math.max(0, Math.round((usage / limit) * 1_000) / 1_000));
}

/**
 * Returns a reader of the last known share, the power or what `of` reads. A call starts a read of the page when the last one is old, and never
 * waits for it.
 */
export function createPower(
  readPage: (() => Promise<string | undefined>) | undefined,
  now: () => number,
  of: (page: string) => number | undefined = powerOf,
): () => number | undefined {
  let reading = false;
  let read = Number.NEGATIVE_INFINITY;
  let last: { readonly share: number; readonly at: number } | undefined;
  const refresh = async (page: () => Promise<string | undefined>) => {
    reading = true;
    read = now();
    const share = of((await page()) ?? '');
    if (share !== undefined) last = { share, at: now() };
    reading = false;
  };
  return () => {
    if (readPage && !reading && now() - read >= POWER_READ_MS) void refresh(readPage);
    return last && now() - last.at < POWER_STALE_MS ? last.share : undefined;
  };
}
