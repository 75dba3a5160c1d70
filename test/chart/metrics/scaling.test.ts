// The objects that scale a pool, as helm renders them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { jobQueue } from '../../../shared/jobs/job.ts';
import { example, type Manifest, merge, only, refusal, render, run, type Values } from '../helm.ts';
import { kubeconform, SCHEMA_LOCATION } from '../install.ts';
import { alerts, OBSERVABILITY, panels, recorded } from './observability.ts';

const base = merge(example('aks-triton'), { models: { names: ['reference-en', 'voice en'] } });
const scaled = (scaling: Values, more: Values = {}) => merge(base, { scaling, ...more });

interface Trigger {
  readonly type: string;
  readonly name?: string;
  readonly metadata: Readonly<Record<string, string>>;
}
interface Scaled {
  readonly triggers: readonly Trigger[];
  readonly advanced: { readonly horizontalPodAutoscalerConfig: { readonly behavior: unknown } };
  readonly [key: string]: unknown;
}
const specOf = async (values: Values) => only(await render(values), 'ScaledObject').spec as Scaled;

/** Checks manifests against the schemas of their definitions. */
async function conform(manifests: readonly Manifest[]): Promise<void> {
  const text = manifests.map((manifest) => stringify(manifest)).join('---\n');
  const { code, output } = await run(kubeconform, ['-strict', '-summary', '-schema-location', SCHEMA_LOCATION], text);
  expect(code, output).toBe(0);
  expect(output).toMatch(/Skipped: 0/);
}

describe('R15 KEDA', () => {
  it('renders objects that its definitions accept', async () => {
    await conform(await render(scaled({ kind: 'keda', minReplicas: 0, queues: 'aws' })));
  });

  it('reads the queues that functions send jobs to, their length and age', async () => {
    const { triggers } = await specOf(scaled({ kind: 'keda', queues: 'aws' }));
    const queues = ['reference-en', 'voice en'].map((model) => jobQueue('jobs', 'eu', model));
    const named = (type: string, member: string) =>
      triggers.filter((one) => one.type === type).map(({ metadata }) => metadata[member]);
    expect(named('aws-sqs-queue', 'queueURL')).toEqual(queues);
    expect(named('aws-cloudwatch', 'dimensionValue')).toEqual(queues);
  });

  it('wakes an empty pool by the demand that functions report', async () => {
    const { triggers } = await specOf(scaled({ kind: 'keda', minReplicas: 0 }));
    expect(triggers.find(({ name }) => name === 'demand')?.metadata).toMatchObject({
      url: 'https://functions.example.com/api/agents/demand?models=reference-en,voice+en',
      valueLocation: 'demand',
    });
    expect(await refusal(scaled({ kind: 'keda', minReplicas: 0, demand: false }))).toContain('scaling.minReplicas 0');
    expect(await refusal(scaled({ kind: 'keda' }, { models: { names: null } }))).toContain('models.names');
  });

  it('sends functions a pool token, never the client secret of a provider', async () => {
    const poolToken = { secret: 'client', provider: { url: 'https://login.example.com/token', client: 'pool' } };
    expect(await refusal(scaled({ kind: 'keda' }, { poolToken }))).toContain('scaling.demandSecret');
    const manifests = await render(scaled({ kind: 'keda', demandSecret: 'keda-token' }, { poolToken }));
    expect(only(manifests, 'TriggerAuthentication').spec).toEqual({
      secretTargetRef: [{ parameter: 'token', name: 'keda-token', key: 'token' }],
    });
  });

  it('gives a pod 70 % of its streams, and keeps spare pods beside them', async () => {
    const { triggers } = await specOf(scaled({ kind: 'keda', spare: 2 }, { agent: { streams: 100 } }));
    const { query = '', threshold } = triggers.find(({ name }) => name === 'streams')?.metadata ?? {};
    expect(threshold).toBe('70');
    expect(query).toContain('+ 140 * (sum(auricle_agent_streams_open{namespace="pools",pod=~"aks-westeurope-[0-9]+"');
  });

  it('waits for the length of a stream before a pod goes', async () => {
    const { advanced, cooldownPeriod } = await specOf(scaled({ kind: 'keda', streamMinutes: 20 }));
    expect(advanced.horizontalPodAutoscalerConfig.behavior).toMatchObject({
      scaleDown: { stabilizationWindowSeconds: 1_200, policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] },
    });
    expect(cooldownPeriod).toBe(1_200);
  });
});

/** Metrics that the adapter serves, by name, with the recorded series behind each. */
const served = new Map(
  (
    parse(readFileSync(path.join(OBSERVABILITY, 'adapter.yaml'), 'utf8'), { merge: true }) as {
      rules: { custom: { seriesQuery: string; name: { as: string } }[] };
    }
  ).rules.custom.map(({ seriesQuery, name }) => [name.as, seriesQuery.replace(/\{.*/, '')]),
);

describe('R11 L4 the HPA', () => {
  it.each([
    ['streams', '358'],
    ['utterances', '3'],
    ['agentWait', '500m'],
    ['engineWait', '500m'],
    ['queueCompute', '1000m'],
    ['sourceQueueTime', '500m'],
    ['sourceQueueCompute', '1000m'],
  ])('scales by %s to %s, a metric that the adapter serves from a rule', async (metric, averageValue) => {
    const manifests = await render(scaled({ kind: 'hpa', maxReplicas: 4, hpa: { metric } }));
    const hpa = only(manifests, 'HorizontalPodAutoscaler');
    await conform([hpa]);
    const { metrics } = hpa.spec as { metrics: { pods: { metric: { name: string }; target: unknown } }[] };
    expect(metrics[0]?.pods.target).toEqual({ type: 'AverageValue', averageValue });
    const series = served.get(metrics[0]?.pods.metric.name ?? '');
    expect(recorded.map(({ record }) => record)).toContain(series);
  });

  it('is refused for a pool that goes to zero', async () => {
    expect(await refusal(scaled({ kind: 'hpa', minReplicas: 0 }))).toContain('keda');
  });
});

describe('U10 A19 L8 rules and dashboard', () => {
  it('are rendered as PrometheusRules with links, and as a dashboard', async () => {
    const runbookUrl = 'https://docs.example.com/RUNBOOK.md';
    const manifests = await render(merge(base, { observability: { rules: true, dashboard: true, runbookUrl } }));
    await conform(manifests);
    const rules = manifests.filter(({ kind }) => kind === 'PrometheusRule');
    expect(rules).toHaveLength(3);
    expect(JSON.stringify(rules).split(`"runbook_url":"${runbookUrl}#`)).toHaveLength(alerts.length + 1);
    const maps = manifests.filter(({ kind }) => kind === 'ConfigMap') as unknown as { data: Record<string, string> }[];
    const dashboard = JSON.parse(maps.find(({ data }) => data['auricle-pools.json'])?.data['auricle-pools.json'] ?? '');
    const shown = (dashboard.panels as { type: string; title: string }[]).filter(({ type }) => type !== 'row');
    expect(shown.map(({ title }) => title)).toEqual(panels.map(({ title }) => title));
    expect(new Set((dashboard.panels as { id: number }[]).map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });
});
