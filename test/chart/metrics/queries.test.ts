// Each query of a rule, an alert and a panel, at a Prometheus that scrapes a real agent.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { example, merge, only, render } from '../helm.ts';
import { startBusyAgent } from './busy-agent.ts';
import { startEdgePage } from './edge-page.ts';
import { alerts, panels, recorded, ruleFiles } from './observability.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';

/** Metrics that this machine cannot have, by the beginning of their names, with the reason. */
const elsewhere = {
  DCGM_: 'the DCGM exporter needs a GPU',
  'gpu:': 'recorded from the DCGM exporter',
  keda_: 'KEDA runs in a cluster',
  kube_: 'kube-state-metrics runs in a cluster',
  auricle_agent_jobs_: 'jobs need queues and functions',
  auricle_agent_model_: 'loads need the model store',
  auricle_agent_tier_: 'tiers need the model store',
  auricle_edge_series_dropped: 'the edge drops no series below 20,000',
};
const isElsewhere = (name: string) => Object.keys(elsewhere).some((begin) => name.startsWith(begin));

const METRIC = /\b(?:auricle|nv|DCGM|keda|kube|pod|gpu|edge|triton)[_:]\w[\w:]*|\bup\b/g;
const namesIn = (query: string): string[] => [...new Set(query.replaceAll(/"[^"]*"/g, '').match(METRIC))];
const here = recorded.filter(({ expr }) => !namesIn(expr).some(isElsewhere));

let agent: Awaited<ReturnType<typeof startBusyAgent>>;
let edge: Awaited<ReturnType<typeof startEdgePage>>;
let prometheus: Prometheus;
beforeAll(async () => {
  agent = await startBusyAgent();
  edge = await startEdgePage();
  prometheus = await startPrometheus({ agent: agent.url, edge: edge.url }, ruleFiles);
  // Rates need two samples and work between them.
  await vi.waitFor(
    async () => {
      expect((await agent.work()).status).toBe(200);
      expect(await prometheus.query('pod:auricle_queue_compute:ratio1m > 0')).toHaveLength(1);
      for (const { record = '' } of here) expect((await prometheus.query(record)).length, record).toBeGreaterThan(0);
    },
    { timeout: 40_000, interval: 500 },
  );
}, 60_000);
afterAll(async () => {
  await prometheus?.stop();
  edge?.stop();
  await agent?.stop();
});

const filled = (query: string) => query.replaceAll('$namespace', 'pools').replaceAll('$pod', 'pool-.*');

describe('R14 L8 a panel', () => {
  it.each(panels)('$title: has a series', async ({ query }) => {
    const series = await prometheus.query(filled(query));
    if (!namesIn(query).some(isElsewhere)) expect(series.length).toBeGreaterThan(0);
  });
});

describe('R10 L4 a rule', () => {
  const wanted = (record: string) =>
    record.startsWith('edge:')
      ? { zone: 'eu', model: 'reference-en', pool: 'pool' }
      : { namespace: 'pools', pod: 'pool-0' };

  it.each(here)('$record: has series with the labels of their origin', async ({ record = '' }) => {
    for (const { metric } of await prometheus.query(record)) expect(metric).toMatchObject(wanted(record));
  });
});

describe('R15 a trigger of KEDA', () => {
  it('returns one element, and none without pods', async () => {
    for (const name of ['pool', 'empty']) {
      const pool = { pool: { name }, scaling: { kind: 'keda', demand: false } };
      const { spec } = only(await render(merge(example('aks-triton'), pool)), 'ScaledObject');
      const { triggers } = spec as { triggers: { type: string; metadata: { query: string } }[] };
      expect(triggers.map(({ type }) => type)).toEqual(['prometheus', 'prometheus']);
      for (const { metadata } of triggers)
        expect(await prometheus.query(metadata.query)).toHaveLength(name === 'pool' ? 1 : 0);
    }
  });
});

describe('U10 an alert', () => {
  it.each(alerts)('$alert: reads metrics that the page has', async ({ expr }) => {
    await prometheus.query(expr);
    for (const name of namesIn(expr).filter((one) => !isElsewhere(one)))
      expect((await prometheus.query(name)).length, name).toBeGreaterThan(0);
  });

  it('does not fire at an agent without load', async () => {
    const firing = await prometheus.query('ALERTS{alertstate="firing"}');
    expect(firing.map(({ metric }) => metric.alertname)).toEqual([]);
  });
});
