import type { AllowanceLeft, MetricReport } from './meter.ts';
import { type EdgeMetric, seriesOf } from './metric-table.ts';

/** Series of a zone: 30 actions and outcomes of 200 models at 3 pools. A series is about 200 bytes. */
const SERIES_MAX = 20_000;
/** Tenants whose allowance is shown; beyond, those nearest to their limit. */
const TENANTS_MAX = 500;
/** Time after its last request at which a tenant's allowance is no longer shown. */
const LEFT_MS = 3_600_000;

/**
 * Metrics of one zone, summed from the reports of isolates. In memory: counters start at zero with the object, as
 * Prometheus expects of a restarted process.
 */
export class StoredMetrics {
  readonly #counts = new Map<string, number>();
  readonly #left = new Map<string, AllowanceLeft & { readonly at: number }>();
  readonly #zone: string;

  constructor(zone: string) {
    this.#zone = zone;
  }

  add({ counts, left }: MetricReport, now: number): void {
    for (const [series, value] of Object.entries(counts)) this.#add(series, value);
    for (const [tenant, parts] of Object.entries(left)) this.#note(tenant, parts, now);
  }

  #add(series: string, value: number): void {
    const hasPlace = this.#counts.has(series) || this.#counts.size < SERIES_MAX;
    const name = hasPlace
      ? series
      : seriesOf('auricle_edge_series_dropped_total' satisfies EdgeMetric, { zone: this.#zone });
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + (hasPlace ? value : 1));
  }

  #note(tenant: string, parts: AllowanceLeft, now: number): void {
    this.#left.set(tenant, { ...parts, at: now });
    if (this.#left.size <= TENANTS_MAX) return;
    const least = (one: AllowanceLeft) => Math.min(one.minute, one.day);
    const [fullest] = [...this.#left].reduce((most, one) => (least(one[1]) > least(most[1]) ? one : most));
    this.#left.delete(fullest);
  }

  /** Returns all series with their values. */
  read(now: number): [series: string, value: number][] {
    for (const [tenant, { at }] of this.#left) if (now - at > LEFT_MS) this.#left.delete(tenant);
    const gauge = 'auricle_edge_allowance_left_ratio' satisfies EdgeMetric;
    const zone = this.#zone;
    const left = [...this.#left].flatMap(([tenant, { minute, day }]): [string, number][] => [
      [seriesOf(gauge, { zone, tenant, of: 'minute' }), minute],
      [seriesOf(gauge, { zone, tenant, of: 'day' }), day],
    ]);
    return [...this.#counts, ...left];
  }
}
