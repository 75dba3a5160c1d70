/** A metric in the terms of Prometheus. */
export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * Metrics of the edge (R14). No label holds a subject, a token or content. `model` and `pool` are those of the
 * agent that the request went to, and empty without one, so that callers cannot make series.
 */
export const edgeMetrics = {
  auricle_edge_requests_total: {
    type: 'counter',
    help: 'Requests that ended, by outcome: ok, the reason of the refusal, or http_STATUS',
    labels: ['zone', 'action', 'model', 'pool', 'outcome'],
  },
  auricle_edge_audio_seconds_total: {
    type: 'counter',
    help: 'Seconds of audio that were recognised or spoken',
    labels: ['zone', 'action', 'model', 'pool'],
  },
  auricle_edge_request_seconds: {
    type: 'histogram',
    help: 'Time from the arrival of a served request to its end; live streams are left out',
    labels: ['zone', 'model', 'pool'],
  },
  auricle_edge_allowance_left_ratio: {
    type: 'gauge',
    help: 'Part of the allowance that a tenant had left at its last request, 0 to 1: of a minute or of a day',
    labels: ['zone', 'tenant', 'of'],
  },
  auricle_edge_series_dropped_total: {
    type: 'counter',
    help: 'Counts without a series, because there are too many series',
    labels: ['zone'],
  },
} as const satisfies Record<string, Metric>;

export type EdgeMetric = keyof typeof edgeMetrics;

/** Upper bounds of the buckets, seconds: from a cached answer to an hour of audio. */
export const REQUEST_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120] as const;

const escaped = (value: string) => value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');

/** Returns the name of a series as the text format of Prometheus has it. */
export function seriesOf(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
  return `${name}{${pairs.join(',')}}`;
}

/** Renders series, by name, as a page of Prometheus (text format 0.0.4). */
export function renderMetrics(series: ReadonlyMap<string, number>): string {
  const all = [...series];
  const blocks = Object.entries(edgeMetrics).map(([name, { type, help }]) => {
    const own = all.filter(
      ([one]) => one.startsWith(name) && /^(?:_bucket|_sum|_count)?\{/.test(one.slice(name.length)),
    );
    return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...own.map(([one, value]) => `${one} ${value}`), ''];
  });
  return blocks.map((lines) => lines.join('\n')).join('');
}
