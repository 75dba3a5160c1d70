import { type EdgeMetric, REQUEST_BUCKETS_S, seriesOf } from './metric-table.ts';

/** Series of one report: an isolate serves few models in a second. */
const REPORT_SERIES_MAX = 1_000;

interface Figure {
  readonly limit: number;
  readonly remaining: number;
}

/** Rest of an allowance. */
export interface QuotaLeft {
  readonly requests: Figure;
  readonly audioSeconds: Figure;
}

/** One ended request. */
export interface RequestFacts {
  /** Home zone of the tenant. */
  readonly zone: string;
  /** Absent for an unknown caller. */
  readonly tenant?: string | undefined;
  readonly action: string;
  readonly outcome: string;
  /** Model and pool of the agent that it went to. */
  readonly model?: string | undefined;
  readonly pool?: string | undefined;
  /** Absent for a live stream, whose length is the client's choice. */
  readonly milliseconds?: number | undefined;
  readonly audioSeconds?: number | undefined;
  readonly quota?: QuotaLeft | undefined;
}

/** Parts of an allowance that are left, 0 to 1. */
export interface AllowanceLeft {
  readonly minute: number;
  readonly day: number;
}

/** Counts of one isolate for one zone since its last report. */
export interface MetricReport {
  /** By series. */
  readonly counts: Readonly<Record<string, number>>;
  /** By tenant. */
  readonly left: Readonly<Record<string, AllowanceLeft>>;
}

interface Tally {
  readonly counts: Map<string, number>;
  readonly left: Map<string, AllowanceLeft>;
}

/** Counts the requests of an isolate between two reports. */
export class Meter {
  readonly #tallies = new Map<string, Tally>();

  count({ zone, tenant, quota, ...facts }: RequestFacts): void {
    const tally = this.#tallies.get(zone) ?? { counts: new Map(), left: new Map() };
    this.#tallies.set(zone, tally);
    for (const [series, value] of countsOf(zone, facts)) add(tally.counts, zone, series, value);
    if (tenant !== undefined && quota) tally.left.set(tenant, leftOf(quota));
  }

  /** Returns the reports by zone, and begins new ones. */
  take(): [zone: string, report: MetricReport][] {
    const taken = [...this.#tallies].map(([zone, { counts, left }]): [string, MetricReport] => [
      zone,
      { counts: Object.fromEntries(counts), left: Object.fromEntries(left) },
    ]);
    this.#tallies.clear();
    return taken;
  }
}

/** Adds to a series, or counts it as dropped where there are too many. */
function add(counts: Map<string, number>, zone: string, series: string, value: number): void {
  const hasPlace = counts.has(series) || counts.size < REPORT_SERIES_MAX;
  const name = hasPlace ? series : seriesOf('auricle_edge_series_dropped_total' satisfies EdgeMetric, { zone });
  counts.set(name, (counts.get(name) ?? 0) + (hasPlace ? value : 1));
}

type Counted = Omit<RequestFacts, 'zone' | 'tenant' | 'quota'>;

function countsOf(zone: string, { action, outcome, model = '', pool = '', ...facts }: Counted): [string, number][] {
  const { milliseconds, audioSeconds = 0 } = facts;
  const named = (name: EdgeMetric, labels: Record<string, string>) => seriesOf(name, { zone, ...labels });
  const counts: [string, number][] = [[named('auricle_edge_requests_total', { action, model, pool, outcome }), 1]];
  if (audioSeconds > 0) counts.push([named('auricle_edge_audio_seconds_total', { action, model, pool }), audioSeconds]);
  if (outcome !== 'ok' || pool === '' || milliseconds === undefined) return counts;
  const seconds = milliseconds / 1_000;
  const name = 'auricle_edge_request_seconds' satisfies EdgeMetric;
  const labels = { zone, model, pool };
  for (const bound of [...REQUEST_BUCKETS_S, Number.POSITIVE_INFINITY]) {
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
    counts.push([seriesOf(`${name}_bucket`, { ...labels, le }), seconds <= bound ? 1 : 0]);
  }
  counts.push([seriesOf(`${name}_sum`, labels), seconds], [seriesOf(`${name}_count`, labels), 1]);
  return counts;
}

const leftOf = ({ requests, audioSeconds }: QuotaLeft): AllowanceLeft => ({
  minute: partOf(requests),
  day: partOf(audioSeconds),
});

const partOf = ({ remaining, limit }: Figure): number => (limit > 0 ? remaining / limit : 0);
